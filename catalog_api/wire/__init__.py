"""The wire types of `/v1`, field for field as the specification names them (part 2). They change only by additions.

Stored JSON is sent as it is. These types describe it, encode what is put together here, and give the schemas of the description. A member
with a default is an addition: it is left out where it does not apply. Out of scope: what a request may say (parameters.py,
request_bodies.py), rules.
"""
