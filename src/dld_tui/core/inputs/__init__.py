"""What is fed to a model that is run: shapes, random data, data from files."""
