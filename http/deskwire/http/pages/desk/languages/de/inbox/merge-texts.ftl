title = Mit einer anderen Konversation zusammenführen
about = Die Nachrichten von { $name } aus beiden Konversationen erscheinen in der, die Sie wählen. Keine Nachricht wird noch einmal gesendet, und Sie können es 30 Tage lang rückgängig machen.
find = Eine Konversation dieses Kunden suchen
none = Dieser Kunde hat keine andere Konversation.
noMatch = Keine Konversation entspricht der Suche.
loading = Wird geladen …
untitled = Kein Betreff
last = { $words ->
    [none] { $day }
   *[other] { $words } · { $day }
}
merged = Mit „{ $name }“ zusammengeführt.
what = Konversationen zusammenführen
undo = Rückgängig
undoMerge = Zusammenführung rückgängig machen
undone = Die Konversationen sind wieder getrennt.
failed = Die Konversationen konnten nicht zusammengeführt werden: { $why }
notUndone = Die Zusammenführung konnte nicht rückgängig gemacht werden: { $why }
banner = { $day ->
    [none] Diese Konversation ist zusammengeführt. Neue Nachrichten des Kunden gehen an die andere.
   *[other] Diese Konversation wurde am { $day } zusammengeführt. Neue Nachrichten des Kunden gehen an die andere.
}
openOther = Die andere Konversation öffnen
shows = { $n ->
    [one] 1 zusammengeführte Konversation
   *[other] { $n } zusammengeführte Konversationen
}
from = aus „{ $name }“
fromAnother = aus einer anderen Konversation
