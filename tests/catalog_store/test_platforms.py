from __future__ import annotations

from catalog_store.platforms import (
    AUDIO,
    CATALOG_PLATFORMS,
    FINGERPRINTS,
    INPUTS,
    LINK_SOURCES,
    SOURCES,
    SUGGESTIONS,
    URL_TEMPLATES,
    VIDEO_A,
    WORKS,
)


def test_links_come_from_the_six_platforms_and_the_video_platform_in_the_contracts_order() -> None:
    assert LINK_SOURCES == ("streamsvc_a", "streamsvc_b", "streamsvc_c", "store_a", "catalog_a", "catalog_b", "video_a")
    assert set(SOURCES) == {*CATALOG_PLATFORMS, WORKS}
    assert VIDEO_A not in SOURCES
    assert set(INPUTS) == {*SOURCES, SUGGESTIONS, FINGERPRINTS, AUDIO}


def test_every_link_source_has_an_absolute_url_template_with_an_id() -> None:
    assert set(URL_TEMPLATES) == set(LINK_SOURCES)
    for template in URL_TEMPLATES.values():
        assert template.startswith("https://")
        assert template.count("{id}") == 1
        assert template.replace("{id}", "").replace("{slug}", "").count("{") == 0
