label = Language
browser = As the browser
