"""Ordered lists for the set questions: all tracks and all releases by date, and those of each genre, label and artist, as plain arrays.

layout.py specifies the files, dates.py the order of dates, postings.py sorts lists at build time, build.py writes the files, order.py and
index.py read them, shuffle.py is the random order. Names, ids and where each list begins stand in `serving.sqlite`. What a question means
belongs to catalog_store/queries.
"""
