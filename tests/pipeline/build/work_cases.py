"""Real songs as catalogs name them, and as composition data name them under the same code.

The titles, artists and lengths are facts; codes are invented. Each row: recording title, artist, length, claimed title, claimed artist,
claimed length (seconds; None: not given). The title of the work is the claimed title unless a seventh value gives it.
"""

from __future__ import annotations

Case = (
    tuple[str, str, int | None, str | None, str | None, int | None] | tuple[str, str, int | None, str | None, str | None, int | None, str]
)

SAME: tuple[Case, ...] = (
    # Capitals, accents, punctuation.
    ("Don't Stop Me Now", "Queen", 209, "DONT STOP ME NOW", "QUEEN", 209),
    ("Jóga", "Björk", 305, "JOGA", "BJORK", 305),
    ("Hey Ya!", "OutKast", 235, "HEY YA", "OUTKAST", None),
    ("Kickstart My Heart", "Mötley Crüe", 283, "KICKSTART MY HEART", "MOTLEY CRUE", 284),
    ("Thunderstruck", "AC/DC", 292, "THUNDERSTRUCK", "AC DC", 292),
    ("Halo", "Beyoncé", 261, "HALO", "BEYONCE KNOWLES", 262),
    ("Für Elise", "Lang Lang", 175, "FUER ELISE", "LANG LANG", 176),
    # Reversed names, articles behind the name.
    ("Like a Rolling Stone", "Bob Dylan", 369, "LIKE A ROLLING STONE", "DYLAN, BOB", None),
    ("Hurt", "Johnny Cash", 216, "HURT", "CASH, JOHNNY", 218),
    ("Paint It, Black", "The Rolling Stones", 202, "PAINT IT BLACK", "ROLLING STONES, THE", 226),
    ("The Boxer", "Simon & Garfunkel", 308, "BOXER, THE", "SIMON AND GARFUNKEL", None),
    ("Islands in the Stream", "Dolly Parton, Kenny Rogers", 249, "ISLANDS IN THE STREAM", "PARTON, DOLLY / ROGERS, KENNY", 248),
    # Guests, subtitles, translations in brackets, other versions under the code.
    ("Empire State of Mind", "JAY-Z, Alicia Keys", 276, "EMPIRE STATE OF MIND", "JAY Z FEAT. ALICIA KEYS", 276),
    ("Umbrella (feat. JAY-Z)", "Rihanna", 275, "UMBRELLA", "RIHANNA FT JAY Z", None),
    ("(I Can't Get No) Satisfaction", "The Rolling Stones", 222, "SATISFACTION", "THE ROLLING STONES", 222),
    ("Águas de Março", "Elis Regina", 211, "AGUAS DE MARCO (WATERS OF MARCH)", "REGINA, ELIS", None),
    ("Hotel California (Live)", "Eagles", 432, "HOTEL CALIFORNIA", "EAGLES, THE", 391),
    ("Blue Monday", "New Order", 449, "BLUE MONDAY 12 INCH VERSION", "NEW ORDER", 450),
    ("Billie Jean - Single Version", "Michael Jackson", 294, "BILLIE JEAN", "JACKSON, MICHAEL", 294),
    # Cut texts, typing errors, missing parts.
    ("Supercalifragilisticexpialidocious", "Julie Andrews", 123, "SUPERCALIFRAGILISTICEXPIA", "ANDREWS, JULIE", None),
    ("Everybody Hurts", "R.E.M.", 317, "EVERBODY HURTS", "REM", 317),
    ("Time", "Pink Floyd", 413, "TIME", None, 413),
    ("Dreams", "Fleetwood Mac", 257, "DREAMS", "VARIOUS ARTISTS", 257),
    ("Another Brick in the Wall, Pt. 2", "Pink Floyd", 239, "ANOTHER BRICK IN THE WALL", "PINK FLOYD", 239),
    # Other scripts and languages, with the title of the work or the length as witness.
    ("夜に駆ける", "YOASOBI", 261, "RACING INTO THE NIGHT", "YOASOBI", 261),
    ("Группа крови", "Кино", 284, "GRUPPA KROVI", "KINO", 284),
    ("99 Luftballons", "Nena", 233, "99 RED BALLOONS", "NENA", 233, "99 LUFTBALLONS"),
    ("上を向いて歩こう", "坂本九", 184, "SUKIYAKI", "SAKAMOTO, KYU", 184),
    # The writer in the field of the artist.
    ("Bohemian Rhapsody", "Queen", 355, "BOHEMIAN RHAPSODY", "MERCURY FREDDIE", None),
    ("Hallelujah", "Jeff Buckley", 413, "HALLELUJAH", "COHEN, LEONARD", 413),
    # Title and artist in each other's field.
    ("Roxanne", "The Police", 191, "THE POLICE", "ROXANNE", 191),
    # A row without a title of its own.
    ("Yesterday", "The Beatles", 125, None, None, None, "YESTERDAY"),
)

OTHER: tuple[Case, ...] = (
    # Two other names, whatever the length.
    ("Bohemian Rhapsody", "Queen", 355, "DANCING QUEEN", "ABBA", 231),
    ("Wonderwall", "Oasis", 258, "CREEP", "RADIOHEAD", 258),
    ("Clocks", "Coldplay", 307, "ANTES DE MORIRME", "GANGA, C", None),
    # Another song of the artist: the next line of a list.
    ("We Will Rock You", "Queen", 122, "WE ARE THE CHAMPIONS", "QUEEN", 179),
    ("Come Together", "The Beatles", 259, "SOMETHING", "BEATLES, THE", 182),
    ("Yellow", "Coldplay", 266, "TROUBLE", "COLDPLAY", None),
    # One title, another song.
    ("Hello", "Adele", 295, "HELLO", "LIONEL RICHIE", 250),
    ("Hello", "Adele", 295, "HELLO", "RICHIE, LIONEL", None),
    ("Angel", "Sarah McLachlan", 270, "ANGEL", "SHAGGY FEAT. RAYVON", 235),
    ("Without You", "David Guetta", 208, "WITHOUT YOU", "MÖTLEY CRÜE", 269),
    ("The Power of Love", "Jennifer Rush", 360, "POWER OF LOVE", "HUEY LEWIS & THE NEWS", 235),
    # Numbers of parts, and titles that many recordings have.
    ("Shine On You Crazy Diamond (Parts I-V)", "Pink Floyd", 811, "SHINE ON YOU CRAZY DIAMOND PARTS VI IX", "PINK FLOYD", 744),
    ("Love Story Part 2", "Nova", 200, "LOVE STORY PART 3", "NOVA", 201),
    ("Intro", "The xx", 127, "INTRO", "XX, THE", 31),
    # Only the title of the work, and another one.
    ("Imagine", "John Lennon", 183, None, None, None, "JEALOUS GUY"),
    # Another script, another length: nothing is left that agrees.
    ("夜に駆ける", "YOASOBI", 261, "TRACING A DREAM", "YOASOBI", 231),
    ("嘘", "SID", 225, "ASTRONAUT", "SIDO", 226),
)
