"""Parts of a model on a page of their own: functions, metadata, profiles."""
