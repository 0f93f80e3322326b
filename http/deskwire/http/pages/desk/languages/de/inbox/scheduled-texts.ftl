title = Später senden
inAnHour = In einer Stunde
tomorrow = Morgen früh
monday = Montag früh
date = Datum und Uhrzeit
schedule = Planen
zone = Zeiten gelten in Ihrer Zeitzone, { $zone }.
inPast = Dieser Zeitpunkt liegt in der Vergangenheit.
tooFar = Wählen Sie einen Zeitpunkt innerhalb eines Jahres.
unlessReplied = { $name ->
    [none] Nicht senden, wenn der Kunde zuerst schreibt
   *[other] Nicht senden, wenn { $name } zuerst schreibt
}
unlessRepliedText = Dann kommt sie mit dem Grund zu Ihnen zurück.
at = Geplant für { $at } ({ $zone })
sending = Wird gesendet …
onlyUnless = Wird nicht gesendet, wenn der Kunde zuerst schreibt.
closed = Wird nicht gesendet, solange die Konversation geschlossen ist.
label = Geplante Antwort
now = Jetzt senden
edit = Bearbeiten
cancel = Abbrechen
cancelled = Abgebrochen. Die Antwort wird nicht gesendet.
undo = Rückgängig
notScheduled = Konnte nicht erneut geplant werden: { $why }
page = Geplant
none = Nichts geplant
noneText = Schreiben Sie eine Antwort und wählen Sie neben „Senden“ die Option „Später senden“.
refused = Nicht gesendet
next = Wird gesendet
loading = Ihre geplanten Antworten werden geladen
failed = Ihre geplanten Antworten konnten nicht geladen werden
to = An { $name }
note = Notiz
files = { $n ->
    [one] { $n } Datei
   *[other] { $n } Dateien
}
