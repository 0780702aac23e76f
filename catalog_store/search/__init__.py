"""The token-pair index: recordings found by artist and title, whatever the noise around both.

layout.py specifies the files, documents.py and words.py turn tables into keys and words, build.py writes (through arrays.py), index.py
maps the files into memory and finds candidates, titles.py and credits.py do both for names; wanted.py reads a query, typos.py widens its
words by one edit, rerank.py scores. The question itself is catalog_store/queries/search.py.
"""
