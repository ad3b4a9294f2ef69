"""Long lists and tables that draw only the rows that are seen."""
