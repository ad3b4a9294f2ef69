"""Tables: declared once, and written as text, CSV, JSON, HTML and Parquet."""
