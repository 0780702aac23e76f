"""Records of several layouts in one shape on disk, staged from there: duplicates found, parts kept apart from records.

An adapter whose platform ships several layouts maps each of them to `record_shapes`, adds the frames to a `DeliveredStore` and calls
`stage_delivered`. Out of scope: anything about one platform.
"""
