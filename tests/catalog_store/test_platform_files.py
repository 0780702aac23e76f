from __future__ import annotations

from pathlib import Path

import pytest

from catalog_store.platform_files import FILE_NAME, SEARCH_PATH, SHIPPED, list_added_folders, read_platforms
from yaml_documents import DocumentError

ADDED = Path(__file__).parents[1] / "added_platforms"
WHOLE = (ADDED / "streamsvc_d" / FILE_NAME).read_text()


def write(folder: Path, text: str, key: str = "streamsvc_d") -> Path:
    (folder / key).mkdir()
    (folder / key / FILE_NAME).write_text(text)
    return folder


def test_an_added_platform_comes_after_those_of_lower_positions() -> None:
    platforms = read_platforms((SHIPPED, ADDED))
    assert [platform.key for platform in platforms][-2:] == ["video_a", "streamsvc_d"]
    assert platforms[-1].id_shape == "^D[0-9]{1,9}$"
    assert platforms[-1].priorities["recording_title"] == 25


def test_the_search_path_names_folders_separated_by_colons() -> None:
    assert list_added_folders({SEARCH_PATH: "/a:/b c:"}) == (Path("/a"), Path("/b c"))
    assert list_added_folders({}) == ()


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("key: streamsvc_d", "key: streamsvc_e", "expected 'streamsvc_d', the name of the folder"),
        ("position: 20", "position: 7", "7 is also that of"),
        ("recording_title: 25", "recording_title: 20", "priorities.recording_title: 20 is also that of"),
        ("recording_title: 25", "recording_titel: 25", "did you mean"),
        ("owner: team:catalog", "owner: me", "team:<name>"),
        ("schedule: weekly", "schedule: sometimes", "expected one of daily, weekly"),
        ("/{id}", "/", "with one {id}"),
        ("id_parameter:", 'addresses: ["https://songs.example/{slug}"]\nid_parameter:', "with one {id} and any number of {slug}"),
        ("id_parameter:", 'addresses: ["http://songs.example/{id}"]\nid_parameter:', "addresses"),
        ("id_parameter:", 'addresses: "https://songs.example/{id}"\nid_parameter:', "addresses"),
        ("https://songs", "http://songs", "expected https://"),
        ('"D[0-9]{1,9}"', '"D[0-9"', "or a regular expression"),
        ("genre_scope: streamsvc_d", "", "needs `genre_scope:`"),
        ("genre_scope: streamsvc_d", "genre_scope: stor_a", "did you mean 'store_a'"),
        ("licence: invented for tests", "", "needs `licence:`"),
    ],
)
def test_a_wrong_member_is_refused_with_its_place(tmp_path: Path, old: str, new: str, said: str) -> None:
    assert old in WHOLE
    folder = write(tmp_path, WHOLE.replace(old, new, 1))
    with pytest.raises(DocumentError, match=r"streamsvc_d/platform.yaml") as refused:
        read_platforms((SHIPPED, folder))
    assert said in str(refused.value)


def test_two_folders_of_one_key_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DocumentError, match="'streamsvc_d' is also that of"):
        read_platforms((ADDED, write(tmp_path, WHOLE.replace("position: 20", "position: 21"))))


def test_a_search_path_without_platforms_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DocumentError, match=SEARCH_PATH):
        read_platforms((SHIPPED, tmp_path))


def test_more_platforms_than_linkage_holds_are_refused(tmp_path: Path) -> None:
    text = WHOLE.partition("priorities:")[0]
    for number in range(3):
        write(
            tmp_path,
            text.replace("streamsvc_d", f"streamsvc_{number}").replace("position: 20", f"position: {30 + number}"),
            f"streamsvc_{number}",
        )
    with pytest.raises(DocumentError, match="at most 8"):
        read_platforms((SHIPPED, tmp_path))


def test_every_shipped_file_lies_beside_an_adapter_or_describes_links_only() -> None:
    for platform in read_platforms((SHIPPED,)):
        assert (SHIPPED / platform.key / "__init__.py").is_file() is platform.has_dumps
