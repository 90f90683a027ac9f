"""Where events come from: each source opens one streaming DataFrame of raw rows."""
