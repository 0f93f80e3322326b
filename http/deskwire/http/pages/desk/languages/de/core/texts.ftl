name = Deskwire
close = Schließen
cancel = Abbrechen
save = Speichern
tryAgain = Erneut versuchen
moduleFailed = Dieser Teil der Anwendung konnte nicht geladen werden. Prüfen Sie Ihre Verbindung und versuchen Sie es noch einmal.
copy = Kopieren
copied = Kopiert
notices = Hinweise
skip = Zur Konversation springen
noTitle = Kein Betreff
you = Sie
visitor = Besucher { $id }
withKeys = { $keys ->
    [none] { $label }
   *[other] { $label } ({ $keys })
}
request = Anfrage { $request }
now = jetzt
minutes = { $n } Min.
hours = { $n } Std.
days = { $n } Tg.
unanswered = Der Dienst antwortet nicht.
outcomeUnknown = Es wurde vor mehr als 23 Stunden gesendet, daher lässt sich das Ergebnis nicht mehr feststellen.
today = Heute
yesterday = Gestern
countMore = { $n }+

views-label = Ansichten
views-open = Navigation
views-mine = Meine
views-mentions = Erwähnungen
views-following = Gefolgt
views-waiting = Unbeantwortet
views-unassigned = Nicht zugewiesen
views-team = Teams
views-snoozed = Zurückgestellt
views-all = Alle
views-saved = Gespeicherte Ansicht
views-search = Suchergebnisse

side-actions = Suchen oder ausführen …

connection-gapBanner = Sie waren mehr als 7 Tage offline, daher wurde alles neu geladen.

list-label = Konversationen
list-search = Suchen
list-searchPlaceholder = Konversationen, Kontakte, Tickets suchen
list-clear = Suche leeren
list-start = Neue Konversation
list-waits = { $how ->
    [none] wartet
   *[other] wartet seit { $how }
}
list-draft = Entwurf
list-mentioned = erwähnt Sie
list-writes = schreibt
list-visitor = Besucher
list-snoozed = bis { $until }
list-fresh = { $n } neu
list-selected = { $n } ausgewählt
list-selectNone = Auswahl aufheben
list-loading = Konversationen werden geladen
list-failed = Die Konversationen konnten nicht geladen werden
list-selectRow = Auswählen
list-unreadRow = Ungelesen
list-notListed = Keine Konversation zum Auswählen.
list-revealed = { $name } war nicht im sichtbaren Bereich. Drücken Sie die Taste noch einmal.

actions-notHere = Es ist keine Konversation geöffnet oder ausgewählt.
actions-notAllowed = Mit Ihrer Rolle können Sie hier nur lesen.
actions-unplaced = Ihr Text wurde nicht übernommen, weil sich kein Feld geöffnet hat: „{ $text }“

thread-none = Keine Konversation geöffnet
thread-noneText = Wählen Sie mit j und k eine aus und öffnen Sie sie mit der Eingabetaste.
thread-bot = Bot
thread-status-OPEN = offen
thread-status-PENDING = ausstehend
thread-status-CLOSED = geschlossen

commands-assignMe = Mir zuweisen
commands-assign = Zuweisen …
commands-close = Schließen
commands-noAnswer = Keine Antwort nötig
commands-pending = Auf „Ausstehend“ setzen
commands-snooze = Zurückstellen
commands-tag = Schlagwort

signIn-offline = Der Dienst antwortet nicht. Versuchen Sie es gleich noch einmal.
signIn-starting = Der Desk wird geöffnet
signIn-crashed = Etwas ist schiefgelaufen
signIn-crashedText = Ihre Entwürfe bleiben erhalten. Laden Sie die Seite neu. Wenn es wieder auftritt, senden Sie uns bitte Folgendes:
signIn-reload = Seite neu laden
