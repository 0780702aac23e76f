"""HTTP `/v1` over a published snapshot: thin handlers, wire types, one error renderer."""
