"""The wire types of `/v1`, field for field as the specification names them (part 2), a module per noun. Changed only additively.

Stored JSON goes out as it is; these types say what it looks like, encode what is put together here, and make the schemas of the
description. A member with a default is additive: it is left out where it does not apply. A type that answers carry goes into the
module of its noun, a value that several nouns share into values.py. What must not live here: what a request may say (parameters.py,
bodies.py), rules.
"""
