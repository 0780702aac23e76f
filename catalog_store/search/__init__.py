"""The token-pair index: recordings found by artist and title, whatever the noise around both.

layout.py specifies the files, documents.py and words.py turn tables into keys and words, build.py writes (through arrays.py), index.py
maps the files into memory, titles.py, credits.py and vocabulary.py do both for what they are named after. wanted.py reads a query,
candidates.py finds what to compare it with, typos.py reads its words in other ways, rerank.py and variants.py compare, calibration.py makes
the score. The question itself is catalog_store/queries/search.py; docs/design/search.md tells the whole.
"""
