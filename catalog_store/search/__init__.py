"""The token-pair index, which finds recordings by artist and title.

Build: documents.py and index_words.py turn tables into keys and words, search_build.py writes the files that layout.py specifies. Read:
search_index.py maps the files into memory. titles.py, credits.py and vocabulary.py do both for one kind of data each. Query: query_names.py
reads the query, candidates.py selects documents, typo_lookup.py corrects its words, reranker.py and variant_comparison.py compare names,
calibration.py computes the score. catalog_store/queries/track_search.py runs these steps. docs/design/search.md explains the design.
"""
