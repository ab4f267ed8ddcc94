"""Plain technical English: how long the sentences of docs are."""
