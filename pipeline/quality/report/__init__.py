"""The report of a build: one HTML page with figures, verdicts and a few examples.

`page.write_report` writes it. `examples.py` chooses rows of the data, `charts.py` draws, and `page.html.j2` is the page. Add a section
where its figures are (../figures.py), then here. The report decides nothing; the gate (../gate.py) does.
"""
