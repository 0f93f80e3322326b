here = Neue Konversation ab hier …
title = Neue Konversation ab dieser Nachricht
about = { $name } sieht eine neue Konversation, die mit diesen Nachrichten beginnt. Sie bleiben auch in dieser, und nichts wird noch einmal gesendet. „Rückgängig“ führt die beiden zusammen.
message = Nachricht
noText = Eine Nachricht ohne Text
subject = Betreff
which = Nachrichten
only = Nur diese Nachricht
onlyNote = Mit einer Notiz allein kann keine Konversation beginnen, die { $name } sieht.
later = { $n ->
    [one] Diese und die spätere (1 Nachricht)
   *[other] Diese und die späteren ({ $n } Nachrichten)
}
leftOut = { $n ->
    [one] 1 der späteren Nachrichten ist schon in einer anderen neuen Konversation und wird ausgelassen.
   *[other] { $n } der späteren Nachrichten sind schon in einer anderen neuen Konversation und werden ausgelassen.
}
tooMany = Nur die ersten { NUMBER($max) } von { NUMBER($n) } Nachrichten: Mit mehr kann eine Konversation nicht beginnen.
notesOnly = Wählen Sie mindestens eine Nachricht, die { $name } sieht.
start = Konversation beginnen
started = { $n ->
    [one] Neue Konversation mit 1 Nachricht.
   *[other] Neue Konversation mit { $n } Nachrichten.
}
what = Neue Konversation
undo = Rückgängig
undone = Die neue Konversation ist mit dieser zusammengeführt.
notUndone = Die Konversationen konnten nicht wieder zusammengeführt werden: { $why }
noMessage = In dieser Konversation ist keine Nachricht, mit der eine neue beginnen könnte.
also = Auch in „{ $name }“
alsoInAnother = Auch in einer anderen Konversation
from = Begonnen aus „{ $name }“
fromAnother = Begonnen aus einer anderen Konversation
