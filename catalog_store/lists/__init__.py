"""Ordered lists as plain arrays: all tracks and all releases by date, and those of each genre, label and artist.

list_format.py specifies the files and dates.py the order of dates. list_build.py writes the files, posting_lists.py sorts lists for it.
list_index.py and dated_order.py read them; shuffle.py is the random order. `serving.sqlite` holds names and ids.
The meaning of a question belongs in catalog_store/queries.
"""
