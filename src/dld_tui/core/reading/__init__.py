"""What a profile report says to people and programs.

- :mod:`.story`: what took the time, and what may help.
- :mod:`.first_lines`: the lines above the tables.
- :mod:`.export`: JSON, CSV, Parquet and an HTML page; :mod:`.card`: a picture to share.
"""
