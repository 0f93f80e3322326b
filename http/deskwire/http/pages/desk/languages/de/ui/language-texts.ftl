label = Sprache
browser = Wie im Browser
