"""Connected components of large graphs: processor time and memory per edge.

    python -m benchmarks.components --edges 10000000 30000000

The graph resembles that of atoms: pairs, and chains of three to five. A third of the nodes have no edge.
"""

from __future__ import annotations

import argparse

import numpy as np

from benchmarks.measurement import measure
from pipeline.linkage.connected_components import label_components


def find(edges: str, *, labels: str = "yes") -> int:
    """Make a graph and count its components; without labels, make the graph alone."""
    count = int(edges)
    random = np.random.default_rng(3)
    # Chains of two to five nodes have 1.9 edges on average.
    sizes = random.choice([2, 3, 4, 5], p=[0.55, 0.2, 0.15, 0.1], size=count // 2)
    starts = np.cumsum(sizes) - sizes
    one = np.arange(sizes.sum())
    one = np.delete(one, starts + sizes - 1)[:count]
    nodes = np.sort(random.choice(1 << 62, size=int(sizes.sum() * 1.5)))
    ends = nodes[one], nodes[one + 1]
    return len(np.unique(label_components(nodes, *ends))) if labels == "yes" else len(ends[0])


def make(edges: str) -> int:
    """Make the graph alone."""
    return find(edges, labels="no")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--edges", type=int, nargs="+", default=[10_000_000, 30_000_000])
    print("| edges | CPU s | peak GB | of this the graph, CPU s | GB |\n|---|---|---|---|---|")
    for edges in parser.parse_args().edges:
        alone, whole = measure("benchmarks.components:make", str(edges)), measure("benchmarks.components:find", str(edges))
        print(f"| {edges:,} | {whole.cpu:.1f} | {whole.memory / 1024:.2f} | {alone.cpu:.1f} | {alone.memory / 1024:.2f} |", flush=True)


if __name__ == "__main__":
    main()
