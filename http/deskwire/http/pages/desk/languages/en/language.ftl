name = English
own-name = English
direction = ltr
