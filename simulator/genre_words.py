"""Words of each platform for the 25 main genres: real strings of the platforms' own lists, each with one main genre.

Only strings with a certain main genre are here, because they serve as truth. Sources: the stores' published closed lists, the CC0
lists of micro-genres and of user genres. Add a string where a platform's variety is too poor; add nothing ambiguous.
"""

from __future__ import annotations

from typing import NamedTuple

MAINS: tuple[tuple[str, float], ...] = (
    ("House", 9), ("Techno", 5), ("Trance", 3), ("DnB", 3), ("Dubstep", 1.5), ("Breakbeat", 1), ("Garage", 1), ("Hardstyle", 0.8),
    ("Hardcore", 1), ("Electronic", 9), ("Rock", 17), ("Metal", 5), ("Pop", 13), ("Hip-Hop", 10), ("R&B", 4), ("Jazz", 3), ("Blues", 1.5),
    ("Country", 2), ("Folk", 2), ("Classical", 2), ("Reggae", 1.5), ("Latin", 3), ("World", 1.5), ("Soundtrack", 1), ("Gospel", 1),
)  # fmt: skip
"""Main genre and its share of the artists, in percent."""
DANCE_MAINS = ("House", "Techno", "Trance", "DnB", "Dubstep", "Breakbeat", "Garage", "Hardstyle", "Hardcore", "Electronic")
UMBRELLAS = {**dict.fromkeys(DANCE_MAINS, "electronic"), "Metal": "rock", "Gospel": "christian", "Latin": "world"}
"""The broad tag that users give beside the exact one."""


class StoreGenre(NamedTuple):
    """A genre of store_a with its sub-genre, if any; ids are the store's."""

    genre_id: int
    genre: str
    sub_genre_id: int | None = None
    sub_genre: str | None = None


STREAMSVC_A: dict[str, tuple[str, ...]] = {
    "House": (
        "house",
        "deep groove house",
        "tech house",
        "acid house",
        "funky house",
        "afro house",
        "progressive house",
        "french tech house",
        "uk house",
    ),
    "Techno": ("techno", "detroit techno", "minimal techno", "dub techno", "german techno", "industrial techno", "swedish techno"),
    "Trance": ("trance", "uplifting trance", "progressive trance", "goa trance", "tech trance", "acid trance", "german trance"),
    "DnB": ("drum and bass", "liquid funk", "neurofunk", "jungle", "jump up"),
    "Dubstep": ("dubstep", "deep dubstep", "brostep", "riddim dubstep", "melodic dubstep"),
    "Breakbeat": ("breakbeat", "nu skool breaks", "funky breaks", "big beat", "progressive breaks"),
    "Garage": ("uk garage", "speed garage", "future garage", "bassline"),
    "Hardstyle": ("hardstyle", "classic hardstyle", "rawstyle", "nederlandse hardstyle", "euphoric hardstyle"),
    "Hardcore": ("happy hardcore", "gabber", "frenchcore", "speedcore", "hardcore techno", "deep happy hardcore"),
    "Electronic": ("electronica", "electro", "downtempo", "idm", "ambient", "synthwave", "belgian electronic", "experimental ambient"),
    "Rock": (
        "rock",
        "album rock",
        "alternative rock",
        "indie rock",
        "hard rock",
        "garage rock revival",
        "belgian rock",
        "british post-rock",
    ),
    "Metal": ("metal", "black metal", "death metal", "thrash metal", "belgian metal", "atmospheric black metal", "power metal"),
    "Pop": ("pop", "dance pop", "indie pop", "europop", "austrian pop", "k-pop", "j-pop", "acoustic pop"),
    "Hip-Hop": ("hip hop", "rap", "belgian hip hop", "alternative hip hop", "gangster rap", "chicago rap", "conscious hip hop"),
    "R&B": ("r&b", "soul", "neo soul", "funk", "contemporary r&b", "british soul", "chicago soul"),
    "Jazz": ("jazz", "contemporary jazz", "cool jazz", "free jazz", "smooth jazz", "bebop", "finnish jazz"),
    "Blues": ("blues", "acoustic blues", "chicago blues", "modern blues", "texas blues", "swedish blues"),
    "Country": ("country", "contemporary country", "outlaw country", "bluegrass", "australian country", "texas country"),
    "Folk": ("folk", "contemporary folk", "indie folk", "british folk", "irish folk", "anti-folk"),
    "Classical": ("classical", "baroque", "opera", "british classical piano", "austrian orchestra", "classical era"),
    "Reggae": ("reggae", "roots reggae", "modern reggae", "dancehall", "ska", "lovers rock", "rocksteady"),
    "Latin": ("latin", "salsa", "bachata", "cumbia", "reggaeton", "latin pop", "norteno", "mariachi"),
    "World": ("world", "afrobeat", "highlife", "zouk", "soukous", "klezmer", "rai"),
    "Soundtrack": ("soundtrack", "orchestral soundtrack", "japanese soundtrack", "anime score", "italian soundtrack"),
    "Gospel": ("gospel", "contemporary gospel", "southern gospel", "ccm", "worship", "christian music"),
}

STREAMSVC_B: dict[str, tuple[tuple[str, ...], ...]] = {
    "House": (("Dance", "House"),),
    "Techno": (("Dance", "Techno"),),
    "Trance": (("Dance", "Trance"),),
    "DnB": (("Dance", "Jungle/Drum'n'bass"),),
    "Dubstep": (("Electronic", "Dubstep"),),
    "Breakbeat": (("Dance", "Breakbeat"),),
    "Garage": (("Dance", "Garage"),),
    "Hardstyle": (("Dance",),),
    "Hardcore": (("Dance", "Hardcore"),),
    "Electronic": (
        ("Electronic",),
        ("Electronic", "Ambient"),
        ("Electronic", "Downtempo"),
        ("Electronic", "Electronica"),
        ("Electronic", "IDM/Experimental"),
    ),
    "Rock": (("Rock",), ("Rock", "Hard Rock"), ("Alternative", "Indie Rock"), ("Alternative", "Punk"), ("Alternative", "Grunge")),
    "Metal": (("Rock", "Metal"), ("Rock", "Death Metal/Black Metal"), ("Rock", "Heavy Metal")),
    "Pop": (("Pop",), ("Pop", "Adult Contemporary"), ("Pop", "Teen Pop"), ("J-Pop",), ("Pop", "K-Pop")),
    "Hip-Hop": (("Hip-Hop/Rap",), ("Hip-Hop/Rap", "Rap"), ("Hip-Hop/Rap", "Underground Rap"), ("Hip-Hop/Rap", "East Coast Rap")),
    "R&B": (("R&B/Soul",), ("R&B/Soul", "Soul"), ("R&B/Soul", "Funk"), ("R&B/Soul", "Contemporary R&B")),
    "Jazz": (("Jazz",), ("Jazz", "Bebop"), ("Jazz", "Contemporary Jazz"), ("Jazz", "Cool Jazz")),
    "Blues": (("Blues",), ("Blues", "Chicago Blues"), ("Blues", "Electric Blues")),
    "Country": (("Country",), ("Country", "Bluegrass"), ("Country", "Outlaw Country")),
    "Folk": (("Singer/Songwriter", "Contemporary Folk"), ("Singer/Songwriter", "Traditional Folk"), ("Folk",)),
    "Classical": (("Classical",), ("Classical", "Opera"), ("Classical", "Baroque Era"), ("Classical", "Chamber Music")),
    "Reggae": (("Reggae",), ("Reggae", "Roots Reggae"), ("Reggae", "Ska"), ("Reggae", "Modern Dancehall")),
    "Latin": (("Latin",), ("Latin", "Salsa y Tropical"), ("Latin", "Urbano latino"), ("Latin", "Regional Mexicano")),
    "World": (("Worldwide",), ("African", "Afro-Beat"), ("Worldwide", "Celtic"), ("Arabic",)),
    "Soundtrack": (("Soundtrack",), ("Soundtrack", "Original Score"), ("Soundtrack", "Musicals")),
    "Gospel": (("Christian & Gospel",), ("Christian & Gospel", "Contemporary Gospel"), ("Christian & Gospel", "CCM")),
}
"""Paths below the root, which is always `Music`."""

STREAMSVC_C: dict[str, tuple[str, ...]] = {
    "House": ("House", "Deep House", "Tech House"),
    "Techno": ("Techno", "Minimal Techno"),
    "Trance": ("Trance", "Psytrance"),
    "DnB": ("Drum & Bass", "Jungle"),
    "Dubstep": ("Dubstep",),
    "Breakbeat": ("Breakbeat", "Big Beat"),
    "Garage": ("UK Garage", "2-Step"),
    "Hardstyle": ("Hardstyle",),
    "Hardcore": ("Gabber", "Happy Hardcore"),
    "Electronic": ("Electronic", "Electro", "Ambient", "Downtempo"),
    "Rock": ("Rock", "Alternative Rock", "Indie Rock", "Punk"),
    "Metal": ("Metal", "Black Metal", "Heavy Metal"),
    "Pop": ("Pop", "Indie Pop", "K-Pop"),
    "Hip-Hop": ("Hip-Hop", "Rap/Hip Hop"),
    "R&B": ("R&B", "R&B / Soul", "Soul & Funk"),
    "Jazz": ("Jazz", "Vocal Jazz"),
    "Blues": ("Blues",),
    "Country": ("Country",),
    "Folk": ("Folk",),
    "Classical": ("Classical", "Opera"),
    "Reggae": ("Reggae", "Reggae / Dancehall"),
    "Latin": ("Latin", "Latin Music", "Salsa"),
    "World": ("World", "African Music"),
    "Soundtrack": ("Soundtrack", "Films/Games"),
    "Gospel": ("Gospel", "Gospel / Christian"),
}

STORE_A: dict[str, tuple[StoreGenre, ...]] = {
    "House": (
        StoreGenre(5, "House"),
        StoreGenre(11, "Tech House"),
        StoreGenre(12, "Deep House"),
        StoreGenre(15, "Progressive House"),
        StoreGenre(89, "Afro House"),
        StoreGenre(81, "Funky House"),
        StoreGenre(97, "Jackin House"),
        StoreGenre(91, "Bass House"),
        StoreGenre(96, "Mainstage", 247, "Future House"),
        StoreGenre(93, "Organic House"),
    ),
    "Techno": (
        StoreGenre(6, "Techno (Peak Time / Driving)"),
        StoreGenre(92, "Techno (Raw / Deep / Hypnotic)"),
        StoreGenre(2, "Hard Techno"),
        StoreGenre(6, "Techno (Peak Time / Driving)", 219, "Driving"),
        StoreGenre(92, "Techno (Raw / Deep / Hypnotic)", 225, "Raw"),
    ),
    "Trance": (
        StoreGenre(7, "Trance (Main Floor)"),
        StoreGenre(99, "Trance (Raw / Deep / Hypnotic)"),
        StoreGenre(13, "Psy-Trance"),
        StoreGenre(7, "Trance (Main Floor)", 31, "Hard Trance"),
        StoreGenre(13, "Psy-Trance", 260, "Goa Trance"),
    ),
    "DnB": (StoreGenre(1, "Drum & Bass"), StoreGenre(1, "Drum & Bass", 174, "Deep")),
    "Dubstep": (StoreGenre(18, "Dubstep"),),
    "Breakbeat": (StoreGenre(9, "Breaks / Breakbeat / UK Bass"),),
    "Garage": (
        StoreGenre(86, "UK Garage / Bassline"),
        StoreGenre(86, "UK Garage / Bassline", 198, "UK Garage"),
        StoreGenre(86, "UK Garage / Bassline", 199, "Bassline"),
    ),
    "Hardstyle": (StoreGenre(8, "Hard Dance / Hardcore / Neo Rave", 100, "Hardstyle"),),
    "Hardcore": (
        StoreGenre(8, "Hard Dance / Hardcore / Neo Rave", 215, "Frenchcore"),
        StoreGenre(8, "Hard Dance / Hardcore / Neo Rave", 213, "Terror"),
    ),
    "Electronic": (
        StoreGenre(3, "Electronica"),
        StoreGenre(63, "Downtempo"),
        StoreGenre(94, "Electro (Classic / Detroit / Modern)"),
        StoreGenre(100, "Ambient / Experimental"),
    ),
}

CATALOG_A: dict[str, tuple[tuple[str, str | None], ...]] = {
    "House": (
        ("Electronic", "House"),
        ("Electronic", "Deep House"),
        ("Electronic", "Tech House"),
        ("Electronic", "Acid House"),
        ("Electronic", "Garage House"),
    ),
    "Techno": (("Electronic", "Techno"), ("Electronic", "Minimal Techno"), ("Electronic", "Dub Techno"), ("Electronic", "Hard Techno")),
    "Trance": (("Electronic", "Trance"), ("Electronic", "Progressive Trance"), ("Electronic", "Goa Trance"), ("Electronic", "Psy-Trance")),
    "DnB": (("Electronic", "Drum n Bass"), ("Electronic", "Jungle"), ("Electronic", "Halftime")),
    "Dubstep": (("Electronic", "Dubstep"),),
    "Breakbeat": (("Electronic", "Breakbeat"), ("Electronic", "Breaks"), ("Electronic", "Big Beat"), ("Electronic", "Progressive Breaks")),
    "Garage": (("Electronic", "UK Garage"), ("Electronic", "Speed Garage"), ("Electronic", "Bassline")),
    "Hardstyle": (("Electronic", "Hardstyle"), ("Electronic", "Jumpstyle")),
    "Hardcore": (("Electronic", "Hardcore"), ("Electronic", "Gabber"), ("Electronic", "Happy Hardcore"), ("Electronic", "Speedcore")),
    "Electronic": (
        ("Electronic", "Ambient"),
        ("Electronic", "Electro"),
        ("Electronic", "Downtempo"),
        ("Electronic", "IDM"),
        ("Electronic", "Synth-pop"),
        ("Electronic", None),
    ),
    "Rock": (
        ("Rock", "Alternative Rock"),
        ("Rock", "Indie Rock"),
        ("Rock", "Punk"),
        ("Rock", "Hard Rock"),
        ("Rock", "Pop Rock"),
        ("Rock", None),
    ),
    "Metal": (("Rock", "Black Metal"), ("Rock", "Death Metal"), ("Rock", "Heavy Metal"), ("Rock", "Thrash"), ("Rock", "Doom Metal")),
    "Pop": (("Pop", "Ballad"), ("Pop", "Europop"), ("Pop", "Schlager"), ("Pop", "Chanson"), ("Pop", "Vocal"), ("Pop", None)),
    "Hip-Hop": (("Hip Hop", "Boom Bap"), ("Hip Hop", "Gangsta"), ("Hip Hop", "Conscious"), ("Hip Hop", "Trap"), ("Hip Hop", None)),
    "R&B": (("Funk / Soul", "Soul"), ("Funk / Soul", "Funk"), ("Funk / Soul", "Neo Soul"), ("Funk / Soul", "Contemporary R&B")),
    "Jazz": (("Jazz", "Bop"), ("Jazz", "Cool Jazz"), ("Jazz", "Free Jazz"), ("Jazz", "Contemporary Jazz"), ("Jazz", "Big Band")),
    "Blues": (("Blues", "Chicago Blues"), ("Blues", "Electric Blues"), ("Blues", "Delta Blues"), ("Blues", None)),
    "Country": (("Folk, World, & Country", "Country"), ("Folk, World, & Country", "Bluegrass"), ("Folk, World, & Country", "Honky Tonk")),
    "Folk": (("Folk, World, & Country", "Folk"), ("Folk, World, & Country", "Celtic")),
    "Classical": (
        ("Classical", "Baroque"),
        ("Classical", "Romantic"),
        ("Classical", "Opera"),
        ("Classical", "Choral"),
        ("Classical", None),
    ),
    "Reggae": (("Reggae", "Roots Reggae"), ("Reggae", "Dancehall"), ("Reggae", "Lovers Rock"), ("Reggae", "Rocksteady"), ("Reggae", None)),
    "Latin": (("Latin", "Salsa"), ("Latin", "Cumbia"), ("Latin", "Samba"), ("Latin", "Bolero"), ("Latin", "Reggaeton")),
    "World": (
        ("Folk, World, & Country", "African"),
        ("Folk, World, & Country", "Highlife"),
        ("Folk, World, & Country", "Klezmer"),
        ("Folk, World, & Country", "Soukous"),
    ),
    "Soundtrack": (("Stage & Screen", "Soundtrack"), ("Stage & Screen", "Score"), ("Stage & Screen", "Musical")),
    "Gospel": (("Funk / Soul", "Gospel"), ("Folk, World, & Country", "Gospel")),
}

CATALOG_B: dict[str, tuple[str, ...]] = {
    "House": ("house", "deep house", "tech house", "acid house", "funky house", "french house"),
    "Techno": ("techno", "minimal techno", "detroit techno", "dub techno"),
    "Trance": ("trance", "goa trance", "hard trance", "tech trance", "psytrance"),
    "DnB": ("drum and bass", "jungle", "neurofunk", "techstep"),
    "Dubstep": ("dubstep",),
    "Breakbeat": ("breakbeat", "big beat", "broken beat"),
    "Garage": ("uk garage", "speed garage", "2-step", "bassline"),
    "Hardstyle": ("hardstyle",),
    "Hardcore": ("happy hardcore", "hardcore techno", "speedcore", "breakbeat hardcore"),
    "Electronic": ("electro", "electronica", "idm", "synth-pop", "ambient", "downtempo"),
    "Rock": ("rock", "indie rock", "hard rock", "punk rock", "alternative rock", "grunge", "pop rock"),
    "Metal": ("heavy metal", "death metal", "black metal", "thrash metal", "power metal"),
    "Pop": ("pop", "dance-pop", "j-pop", "k-pop", "europop", "pop soul"),
    "Hip-Hop": ("hip hop", "gangsta rap", "boom bap", "trap"),
    "R&B": ("soul", "contemporary r&b", "funk", "northern soul", "quiet storm"),
    "Jazz": ("jazz", "bebop", "hard bop", "cool jazz", "free jazz", "big band"),
    "Blues": ("blues", "chicago blues", "acoustic blues", "texas blues"),
    "Country": ("country", "bluegrass", "outlaw country", "honky tonk", "alternative country"),
    "Folk": ("folk", "contemporary folk", "indie folk", "irish folk"),
    "Classical": ("classical", "opera", "baroque", "modern classical"),
    "Reggae": ("reggae", "roots reggae", "dancehall", "rocksteady", "lovers rock", "ska"),
    "Latin": ("salsa", "bachata", "cumbia", "reggaeton", "bolero", "latin pop"),
    "World": ("afrobeat", "klezmer", "soukous", "zouk", "highlife"),
    "Soundtrack": ("soundtrack", "musical", "film score"),
    "Gospel": ("gospel", "southern gospel", "contemporary gospel", "contemporary christian"),
}
NO_GENRES = ("seen live", "favorites", "2008", "female vocalists", "british", "owned", "00s", "instrumental version", "purchased")
"""Tags that users give and that are not genres."""
