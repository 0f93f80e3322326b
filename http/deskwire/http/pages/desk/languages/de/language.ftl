name = German
own-name = Deutsch
direction = ltr
