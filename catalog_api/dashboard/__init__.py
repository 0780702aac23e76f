"""The dashboard of key holders at `/dashboard`: pages and forms made on the server, without scripts.

    site                 routes, errors as pages, the policy headers of every answer
    browser_session      one request of a browser: cookie, session, the check of every form
    page_rendering       templates to answers
    internal_requests    requests to /v1 in this process, as one of the account's keys: same code, same checks, same price
    bounded_threads      threads for blocking work, with bounds and deadlines: /v1 never waits for a page
    account_pages, track_pages, stream_pages, webhook_pages    the pages

Out of scope: rules about keys, credits and passwords (account_store), anything that /v1 needs.
"""
