"""What can be asked of a catalog: one module per subject, plain functions over the opened files of one snapshot.

Add a question here and expose it on `catalog_store.reader.Catalog`. What must not live here: HTTP, SQL that writes, file formats.
"""
