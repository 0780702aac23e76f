"""The report of a build: one HTML page that a person likes to read, out of figures, verdicts and a few examples.

`page.write_report` writes it; `examples.py` picks what is shown of the data, `charts.py` draws, `page.html.j2` is the page. Add a section
where its figures are (pipeline/build/figures.py), then here. What must not live here: deciding anything (pipeline/build/gate.py).
"""
