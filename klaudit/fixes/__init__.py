"""From set-ups to better ones: byte-exact edits, proven before they are written."""
