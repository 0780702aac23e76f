"""The routes of `/v1`, one module per resource. A handler reads parameters, asks the catalog one question and answers."""
