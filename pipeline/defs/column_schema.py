"""Table specs in the form of Dagster's column schema, which its asset catalog shows."""

import dagster as dg

from catalog_store.tables import Table


def build_column_schema(table: Table) -> dg.TableSchema:
    """Return name, type, description and constraints of every column."""
    return dg.TableSchema(
        columns=[
            dg.TableColumn(
                name=column.name,
                type=str(column.type),
                description=column.description,
                constraints=dg.TableColumnConstraints(nullable=column.nullable, unique=table.primary_key == (column.name,)),
            )
            for column in table.columns
        ]
    )
