"""The questions that a catalog answers: one module per subject, plain functions over the open files of one snapshot.

Add a question here and expose it on `catalog_store.reader.Catalog`. HTTP, SQL that writes and file formats do not belong here.
"""
