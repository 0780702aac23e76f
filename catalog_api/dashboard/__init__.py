"""The dashboard of key holders at `/dashboard`: pages made on the server, forms, the browser's own controls; no script.

    site       puts it together: routes, errors as pages, the policy headers of every answer
    visits     one request of a browser: cookie, session, the check of every form
    pages      templates to answers
    asking     questions to /v1, in this process, as one of the account's keys: same code, same checks, same price
    lanes      threads of its own for what blocks, with bounds and deadlines: /v1 never waits for a page
    entrance, overview, keys, search, tracks, genres, suggestions, streams, webhooks    the pages

Add a module when a page appears. What must not live here: rules about keys, credits, passwords (account_store), anything that /v1 needs.
"""
