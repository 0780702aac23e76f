"""File formats of dumps: each reader yields frames and names every record that it cannot read."""
