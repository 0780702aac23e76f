"""Table specs -> Dagster's column schema, so that the asset catalog shows the columns that the code writes."""

import dagster as dg

from catalog_store.tables import Table


def column_schema(table: Table) -> dg.TableSchema:
    """Name, type, description and constraints of every column."""
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
