"""The token-pair index: recordings found by artist and title, whatever the noise around both.

layout.py specifies the files, names.py turns names into comparable keys and tokens, build.py writes, index.py maps the files into memory
and finds candidates, typos.py widens tokens by one edit, rerank.py scores. The question itself is catalog_store/queries/search.py.
"""
