"""What all pages share: bars, keys, themes, drawing."""
