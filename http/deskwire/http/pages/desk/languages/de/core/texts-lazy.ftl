unknownClient = Unbekanntes Programm
back = Zurück
show = Anzeigen

list-empty-mine = Alles erledigt
list-empty-waiting = Niemand wartet
list-empty-unassigned = Alles ist zugewiesen
list-empty-mentions = Noch keine Erwähnungen
list-empty-following = Sie folgen keiner Konversation
list-empty-team = Keine Konversationen für dieses Team
list-empty-view = Keine Konversationen in dieser Ansicht
list-empty-snoozed = Nichts zurückgestellt
list-empty-all = Noch keine Konversationen

list-emptyText-mine = Hier erscheinen die Konversationen, die Ihnen zugewiesen sind.
list-emptyText-waiting = Kein Kunde wartet auf eine Antwort.
list-emptyText-mentions = Hier erscheinen Konversationen, in denen jemand aus dem Team Sie in einer Notiz erwähnt.
list-emptyText-following = Drücken Sie in einer Konversation f, um ihr zu folgen. Auch durch eine Erwähnung folgen Sie ihr.
list-emptyText-unassigned = Hier erscheinen neue Konversationen.
list-emptyText-team = Hier erscheinen die Konversationen, die diesem Team zugewiesen sind.
list-emptyText-view = Hier erscheinen Konversationen, die dem Filter der Ansicht entsprechen.
list-emptyText-snoozed = Zurückgestellte Konversationen kehren zu ihrem Zeitpunkt zurück oder sobald der Kunde schreibt.
list-emptyText-all = Sie erscheinen hier, sobald Sie oder Ihr Backend eine beginnen.

list-statuses-all = Jeder Status
list-statuses-active = Offen und ausstehend
list-statuses-OPEN = Offen
list-statuses-PENDING = Ausstehend
list-statuses-CLOSED = Geschlossen
list-statuses-archived = Archiviert
list-sorts-activity = Neueste Aktivität
list-sorts-waiting = Am längsten wartend
list-sorts-created = Neueste zuerst
list-unread = Nur ungelesene
list-readAll = Alle als gelesen markieren
list-noneYet = Noch nichts gefunden
list-noneYetText = Es wurden viele Konversationen geprüft, und es gibt noch mehr.
list-keepLooking = Weitersuchen
list-looking = Suche läuft …
list-filtered = Keine Konversation entspricht diesen Filtern
list-clearFilters = Filter zurücksetzen
list-snoozedToo = { $n ->
    [one] { $n } Konversation ist zurückgestellt.
   *[other] { $n } Konversationen sind zurückgestellt.
}
list-searchFailed = Die Suche ist fehlgeschlagen
list-noneFound = Keine Ergebnisse für „{ $q }“
list-noneFoundText = Die Suche findet Wortanfänge in Betreffzeilen, Nachrichten, Namen und Tickets.
list-contacts = Kontakte
list-tickets = Tickets
list-conversations = Konversationen

filter-button = Filtern
filter-title = Diese Ansicht filtern
filter-apply = Anwenden
filter-active = Bedingungen dieser Ansicht
filter-any = Beliebig
filter-anyTime = Jederzeit
filter-separated = Mehrere durch Kommas trennen.
filter-remove = Entfernen: { $text }
filter-durations-m = { $n ->
    [one] { $n } Minute
   *[other] { $n } Minuten
}
filter-durations-h = { $n ->
    [one] { $n } Stunde
   *[other] { $n } Stunden
}
filter-durations-d = { $n ->
    [one] { $n } Tag
   *[other] { $n } Tagen
}
filter-durations-w = { $n ->
    [one] { $n } Woche
   *[other] { $n } Wochen
}
filter-within = innerhalb von { $duration }
filter-before = seit mehr als { $duration } nicht
filter-atLeast = seit mindestens { $duration }
filter-attributeHint = Zum Beispiel plan:gold. Mehrere durch Kommas trennen; alle müssen zutreffen. Die Angabe erscheint nicht in der Adresse.
filter-unrated = Nicht bewertet
filter-rating = { $from } bis { $to }
filter-priorities-URGENT = Dringend
filter-priorities-HIGH = Hoch
filter-priorities-MEDIUM = Mittel
filter-priorities-LOW = Niedrig
filter-fields-tag = Mit einem dieser Schlagwörter
filter-fields-allTags = Mit allen diesen Schlagwörtern
filter-fields-withoutTags = Ohne diese Schlagwörter
filter-fields-activeWithin = Letzte Aktivität
filter-fields-inactiveFor = Keine Aktivität
filter-fields-createdWithin = Erstellt
filter-fields-waitingFor = Wartet auf Antwort
filter-fields-contactAttribute = Attribute des Kontakts
filter-fields-rating = Bewertung
filter-fields-priority = Priorität des Tickets
filter-fields-assignee = Zuständig

filter-chips-assignee = Zuständig: { $value }
filter-chips-tag = Schlagwort: { $value }
filter-chips-allTags = Alle Schlagwörter: { $value }
filter-chips-withoutTags = Ohne: { $value }
filter-chips-activeWithin = Aktiv in den letzten { $value }
filter-chips-inactiveFor = Nicht aktiv seit { $value }
filter-chips-createdWithin = Erstellt in den letzten { $value }
filter-chips-createdSince = Erstellt seit { $value }
filter-chips-createdUntil = Erstellt vor { $value }
filter-chips-waitingFor = Wartet seit { $value }
filter-chips-contactAttribute = Kontakt: { $value }
filter-chips-team = Zuständig: { $value }
filter-chips-waiting = { $value ->
    [true] Wartet auf eine Antwort
   *[false] Wartet nicht
}
filter-chips-snoozed = Zurückgestellt
filter-chips-following = { $value ->
    [true] Sie folgen ihr
   *[false] Sie folgen ihr nicht
}
filter-chips-mentioned = { $value ->
    [true] Erwähnt Sie
   *[false] Erwähnt Sie nicht
}
filter-chips-channel = Kanal: { $value }
filter-chips-priority = Priorität: { $value }
filter-chips-rating = Bewertung: { $value }
filter-chips-rated = { $value ->
    [true] Bewertet
   *[false] Nicht bewertet
}

side-project = Projekt
side-settings = Einstellungen
side-notifications = Benachrichtigungen
side-shortcuts = Tastenkürzel
side-signOut = Abmelden
side-me = Sie und Ihre Einstellungen
side-status = Verbindung

connection-connecting = Verbindung wird hergestellt …
connection-live = Live
connection-reconnecting = Verbindung wird wiederhergestellt …
connection-offline = Offline
connection-silent = Keine Antwort
connection-gap = Wird neu geladen …
connection-ended = Getrennt
connection-offlineSince = Sie sind seit { $since } offline. Was Sie senden, bleibt hier gespeichert, bis Sie wieder online sind.
connection-brokenSince = Keine Verbindung zum Dienst seit { $since }. Nichts geht verloren: Was Sie senden, bleibt hier gespeichert, bis Sie wieder online sind.
connection-kept = { $n ->
    [one] { $n } Nachricht oder Änderung ist hier gespeichert.
   *[other] { $n } Nachrichten und Änderungen sind hier gespeichert.
}
connection-limited = Zu viele Anfragen. Neuer Versuch in { $s } s. Nichts geht verloren.
connection-endedBanner = Der Dienst hat diese Verbindung geschlossen.
connection-ended_-permission_lost = Sie haben keinen Zugriff mehr auf dieses Projekt. Wenden Sie sich an Ihre Administration.
connection-ended_-second_factor_required = Ihre Organisation verlangt einen zweiten Faktor. Richten Sie in Ihrem Konto einen ein, um fortzufahren.
connection-ended_-too_many_streams = Sie haben den Desk an zu vielen Stellen geöffnet. Schließen Sie einige und versuchen Sie es erneut.
connection-cursor = Neuestes Ereignis
connection-lastEvent = Letztes Ereignis
connection-caughtUp = Verpasste Ereignisse
connection-events = { $n }
connection-waitingToSend = Nicht gesendet
connection-retry = Jetzt versuchen
connection-nothing = –

thread-loading = Die Konversation wird geladen
thread-failed = Die Konversation konnte nicht geladen werden
thread-label = Nachrichten
thread-noAnswer = Keine Antwort nötig
thread-noAnswerBy = { $who } hat vermerkt, dass keine Antwort nötig ist · { $at }
thread-empty = Noch keine Nachrichten
thread-older = Ältere Nachrichten werden geladen
thread-begin = Beginn der Konversation
thread-note = Notiz · nur für Agenten sichtbar
thread-system = System
thread-toEnd = Neueste Nachrichten
thread-newBelow = { $n ->
    [one] { $n } neue Nachricht
   *[other] { $n } neue Nachrichten
}
thread-copyMessageLink = Link kopieren
thread-linkLoading = Die verlinkte Nachricht wird geladen …
thread-linkGone = Die verlinkte Nachricht wurde gelöscht oder hat nie existiert.
thread-linkFailed = Die verlinkte Nachricht konnte nicht geladen werden: { $why }
thread-redacted = Geschwärzt
thread-redact = Schwärzen …
thread-deleteMessage = Löschen …
thread-messageActions = Aktionen für diese Nachricht
thread-showAll = Mehr anzeigen
thread-showLess = Weniger anzeigen
thread-attachment = Anhang { $name }
thread-view = { $names } liest mit
thread-write = { $names } schreibt
thread-writeMany = { $names } schreiben
thread-viewMany = { $names } lesen mit
thread-writes = { $name ->
    [none] Jemand schreibt
   *[other] { $name } schreibt
}
thread-writesToo = { $name ->
    [none] Jemand schreibt ebenfalls
   *[other] { $name } schreibt ebenfalls
}
thread-writesNote = { $name ->
    [none] Jemand schreibt eine Notiz
   *[other] { $name } schreibt eine Notiz
}
thread-goneTitle = Diese Konversation wurde gelöscht
thread-gone-manual = Jemand aus dem Team oder Ihr Backend hat sie gelöscht.
thread-gone-retention = Ihre Aufbewahrungsfrist ist abgelaufen: Das Projekt bewahrt Konversationen nur begrenzte Zeit auf.
thread-gone-gdpr = Der Kontakt wurde mit allen seinen Daten gelöscht.
thread-gone-not_found = Sie existiert nicht, oder Sie haben keinen Zugriff darauf.
thread-goneDraft = Ihr Entwurf ist noch da:
thread-copyDraft = Entwurf kopieren
thread-dropDraft = Entwurf verwerfen
thread-hidden = für den Kontakt unsichtbar
thread-hiddenHint = Der Kontakt sieht diese Konversation noch nicht.
thread-snoozed = zurückgestellt bis { $at }

truth-kept = Wird gesendet, sobald Sie wieder online sind
truth-keptLimited = Hier gespeichert: zu viele Anfragen
truth-keptSignedOut = Hier gespeichert, bis Sie sich anmelden
truth-keptFailed = Hier gespeichert: Fehler im Dienst, neuer Versuch läuft
truth-keptNext = Hier gespeichert, wird nach früheren Nachrichten gesendet
truth-sending = Wird gesendet …
truth-onDisk = Gespeichert
truth-within = in { $time }
truth-ms = { $ms } ms
truth-s = { $s } s
truth-got = { $after } später an { $name } zugestellt
truth-gotIt = An { $name } zugestellt
truth-gotAll = An alle { $n } Endpunkte zugestellt
truth-trying = { $name }: neuer Versuch{ $why }
truth-waiting = { $name }: in der Warteschlange
truth-failed = Nicht an { $name } zugestellt: { $why }
truth-failedMany = { $n } Nachrichten nicht an { $name } zugestellt: { $why }
truth-behind = { $id } hat sie nicht bestätigt
truth-away = { $id } ist nicht verbunden
truth-confirmed = { $n ->
    [one] Von { $n } Stream-Abonnenten bestätigt
   *[other] Von { $n } Stream-Abonnenten bestätigt
}
truth-why = Warum?
truth-receipts = Zustellung dieser Nachricht
truth-attempts = { $n ->
    [one] { $n } Versuch
   *[other] { $n } Versuche
}
truth-answered = Antwort { $status }
truth-next = nächster Versuch { $at }
truth-storedHere = Gesendet
truth-unreached = Noch nicht im Browser des Kunden
truth-missed = Nicht an den Kunden zugestellt
truth-notReached = Gespeichert, noch nicht im Browser des Kunden
truth-reached = { $exact ->
    [true] Im Browser des Kunden angekommen { $at }
   *[false] Im Browser des Kunden angekommen bis { $at }
}
truth-seenAt = { $exact ->
    [true] gesehen { $at }
   *[false] gesehen bis { $at }
}
truth-some = { $words } ({ $n } von { $total })
truth-notAccepted = Konnte nicht gesendet werden
truth-edit = Bearbeiten
truth-discard = Verwerfen
truth-retry = Erneut senden

composer-label = Schreiben
composer-reply = Antwort
composer-note = Notiz
composer-toCustomer = Der Kunde wird dies sehen
composer-onlyAgents = Nur Agenten werden dies sehen
composer-replyTo = { $name } antworten …
composer-writeNote = Notiz für Ihr Team schreiben …
composer-send = Senden
composer-addNote = Notiz hinzufügen
composer-keep = Senden, sobald online
composer-sendMore = Weitere Möglichkeiten zum Senden
composer-sendClose = Senden und schließen
composer-sendLater = Später senden …
composer-writeFirst = Schreiben Sie zuerst die Antwort und wählen Sie dann den Zeitpunkt.
composer-sendPending = Senden und auf „Ausstehend“ setzen
composer-sendSnooze = Senden und bis morgen zurückstellen
composer-attach = Datei anhängen
composer-snippet = Textbaustein einfügen
composer-speak = Antwort diktieren
composer-dropHere = Dateien hier ablegen, um sie anzuhängen
composer-offline = Wird gesendet, sobald Sie wieder online sind
composer-keptIn-saved = Entwurf gespeichert
composer-keptIn-device = Entwurf nur auf diesem Gerät gespeichert
composer-keptIn-nowhere = Entwurf nicht gespeichert: Kopieren Sie ihn, bevor Sie die Seite verlassen
composer-useAsReply = Als Antwort verwenden
composer-useAsNote = Als Notiz verwenden
composer-draftLost = Dieser Browser kann keine Entwürfe speichern: Kopieren Sie Ihren Text, bevor Sie die Seite verlassen.
composer-left = Noch { $n }
composer-over = { $n } Zeichen über dem Limit
composer-cannot = Sie dürfen hier nicht antworten. Mit Ihrer Rolle können Sie nur lesen.
composer-cannotProject = { $role ->
    [none] Mit Ihrer Rolle können Sie hier lesen, aber nicht antworten.
   *[other] Mit Ihrer Rolle ({ $role }) können Sie hier lesen, aber nicht antworten.
}
composer-sendingIn = Wird in { $s } s gesendet
composer-scheduled = Geplant für { $at }
composer-scheduledGone = Eine geplante Antwort wurde nicht gesendet: Ihre Konversation wurde gelöscht.
composer-undo = Rückgängig
composer-now = Jetzt senden
composer-removeFile = { $name } entfernen
composer-uploading = { $name } wird hochgeladen
composer-uploadFailed = { $name } kann nicht angehängt werden: { $why }
composer-tooMany = Eine Nachricht kann höchstens 10 Dateien enthalten.
composer-waitFiles = Es werden noch Dateien hochgeladen.
composer-movedOn = { $n ->
    [one] { $name ->
        [none] Jemand hat vor Ihnen geschrieben
       *[other] { $name } hat vor Ihnen geschrieben
    }
   *[other] { $n } neue Nachrichten kamen vor Ihrer
}
composer-sendAnyway = Trotzdem senden
composer-edit = Bearbeiten
composer-discard = Verwerfen
composer-refused = Konnte nicht gesendet werden: { $why }
composer-taken = Ihre Antwort ist wieder im Editor.
composer-alreadySent = Sie war bereits gesendet.
composer-notTakenBack = Konnte nicht zurückgenommen werden: { $why }
composer-heldRefused = { $name ->
    [none] Ihre Antwort konnte nicht gesendet werden: { $why }
   *[other] Ihre Antwort an { $name } konnte nicht gesendet werden: { $why }
}
composer-snippets = Textbausteine
composer-noSnippets = { $q ->
    [none] Noch keine Textbausteine
   *[other] Keine Textbausteine für „{ $q }“
}
composer-reopens = Diese Konversation ist geschlossen. Eine Antwort öffnet sie wieder.

formatting-bar = Formatierung
formatting-bold = Fett
formatting-italic = Kursiv
formatting-code = Code
formatting-link = Link
formatting-bullets = Aufzählung
formatting-numbers = Nummerierte Liste
formatting-quote = Zitat
formatting-words = Linktext
formatting-preview = Vorschau
formatting-on = Formatiert
formatting-previewOf = Vorschau Ihrer Nachricht
formatting-show = Formatierung
formatting-plain = Als reiner Text gesendet: Die Formatierung ist ausgeschaltet.

context-label = Kontakt
context-loading = Der Kontakt wird geladen
context-failed = Der Kontakt konnte nicht geladen werden
context-edit = Kontakt bearbeiten
context-name = Name
context-email = E-Mail
context-phone = Telefon
context-id = Externe ID
context-locale = Sprache
context-attributes = Attribute
context-about = Konversation
context-tags = Schlagwörter
context-assignee = Zuständig
context-created = Erstellt
context-rating = Bewertung
context-seen = Vom Kontakt gesehen
context-memory = Gedächtnis
context-nothingRemembered = Keine Gedächtniseinträge zu diesem Kontakt.
context-others = Weitere Konversationen
context-noOthers = Keine weiteren Konversationen.
context-ticket = Ticket
context-tickets = Tickets
context-noTicket = Keine Tickets.
context-network = Netzwerkprotokoll
context-loadNetwork = { $n ->
    [one] { $n } Anfrage anzeigen
   *[other] { $n } Anfragen anzeigen
}
context-workflow = Workflow
context-waitsForAnswer = wartet auf eine Antwort
context-runs = läuft
context-timeline = Verlauf
context-noTimeline = Noch keine Aktivität.
context-notAllowed = Ihre Rolle darf dies nicht lesen.
context-saved = Kontakt gespeichert.
context-saveFailed = Der Kontakt konnte nicht gespeichert werden: { $why }
context-channel = Kanal
context-deletedChannel = Gelöschter Kanal
context-browser = Browser
context-status = Status
context-priority = Priorität
context-copyId = ID der Konversation kopieren
context-unassigned = Nicht zugewiesen

mentions-label = Personen und Teams
mentions-team = Team
mentions-mention = Teammitglied erwähnen
mentions-notifies = Benachrichtigt
mentions-tooMany = Eine Notiz kann höchstens 20 Personen und Teams erwähnen.
mentions-found = { $n ->
    [one] { $n } Vorschlag
   *[other] { $n } Vorschläge
}
mentions-notify = { $name } benachrichtigen
mentions-writtenAs = Geschrieben als @{ $name }

followers-title = Follower
followers-none = Niemand folgt dieser Konversation.
followers-by = Gefolgt von { $names }

activity-started = hat die Konversation begonnen
activity-woke = hat die Zurückstellung beendet
activity-took = hat sie übernommen
activity-unassigned = hat die Zuweisung aufgehoben
activity-archived = hat sie archiviert
activity-unarchived = hat sie aus dem Archiv geholt
activity-shown = hat sie dem Kontakt gezeigt
activity-linked = hat ein Ticket verknüpft
activity-unlinked = hat die Verknüpfung mit dem Ticket gelöst
activity-splitOff = hat sie mit Nachrichten einer anderen Konversation begonnen
activity-split = hat mit Nachrichten von hier eine neue Konversation begonnen
activity-merged = hat sie mit einer anderen Konversation zusammengeführt
activity-unmerged = hat die Zusammenführung rückgängig gemacht
activity-absorbed = hat eine andere Konversation in diese aufgenommen
activity-released = hat eine zusammengeführte Konversation von dieser getrennt
activity-status-OPEN = hat sie wieder geöffnet
activity-status-PENDING = hat sie auf „Ausstehend“ gesetzt
activity-status-CLOSED = hat sie geschlossen
activity-tagged = hat das Schlagwort { $name } hinzugefügt
activity-untagged = hat das Schlagwort { $name } entfernt
activity-snoozed = hat sie bis { $at } zurückgestellt
activity-unneeded = hat vermerkt, dass keine Antwort nötig ist
activity-needed = hat sie als wartend markiert
activity-assigned = hat sie { $name } zugewiesen
activity-named = hat den Betreff in „{ $title }“ geändert
activity-system = Deskwire
activity-key = Serverschlüssel
activity-bot = Bot

actions-assignMe = Mir zuweisen
actions-assigned = Ihnen zugewiesen
actions-assign = Zuweisen …
actions-close = Schließen
actions-reopen = Wieder öffnen
actions-pending = Ausstehend
actions-toPending = Auf „Ausstehend“ setzen
actions-toOpen = Auf „Offen“ setzen
actions-snooze = Zurückstellen
actions-wake = Zurückstellung beenden
actions-tag = Schlagwort
actions-unread = Als ungelesen markieren
actions-context = Kontakt
actions-block = Kontakt blockieren …
actions-unblock = Blockierung aufheben …
actions-more = Weitere Aktionen
actions-already = { $who }: nichts zu ändern
actions-thisOne = Diese Konversation
actions-several = { $n ->
    [one] { $n } Konversation
   *[other] { $n } Konversationen
}

actions-what-assign = { $who } an { $to } zuweisen
actions-what-unassign = Zuweisung aufheben: { $who }
actions-what-close = { $who } schließen
actions-what-reopen = { $who } wieder öffnen
actions-what-pending = { $who } auf „Ausstehend“ setzen
actions-what-snooze = { $who } bis { $until } zurückstellen
actions-what-wake = Zurückstellung beenden: { $who }
actions-what-noAnswer = Keine Antwort nötig: { $who }
actions-what-waitAgain = { $who } als wartend markieren
actions-what-tags = Schlagwörter ändern: { $who }
actions-what-unread = { $who } als ungelesen markieren
actions-what-follow = { $who } folgen
actions-what-unfollow = { $who } nicht mehr folgen
actions-what-rename = Betreff ändern: { $who }
actions-what-archive = { $who } archivieren
actions-what-unarchive = { $who } aus dem Archiv holen

actions-done-assign = { $to } zugewiesen
actions-done-unassign = nicht mehr zugewiesen
actions-done-close = geschlossen
actions-done-reopen = wieder geöffnet
actions-done-pending = auf „Ausstehend“ gesetzt
actions-done-snooze = bis { $until } zurückgestellt
actions-done-wake = nicht mehr zurückgestellt
actions-done-noAnswer = keine Antwort nötig
actions-done-waitAgain = als wartend markiert
actions-done-tags = Schlagwörter geändert
actions-done-unread = als ungelesen markiert
actions-done-follow = Sie folgen jetzt
actions-done-unfollow = Sie folgen nicht mehr
actions-done-rename = Betreff geändert
actions-done-archive = archiviert
actions-done-unarchive = aus dem Archiv geholt

actions-did = { $n ->
    [one] { $who }: { $done }
   *[other] { $who }: { $done }
}

actions-names-assign = { $who } zuweisen
actions-names-close = { $who } schließen
actions-names-reopen = { $who } wieder öffnen
actions-names-open = { $who } wieder öffnen
actions-names-pending = { $who } auf „Ausstehend“ setzen
actions-names-tags = Schlagwörter ändern: { $who }
actions-names-snooze = { $who } zurückstellen
actions-names-noAnswer = Keine Antwort nötig: { $who }
actions-names-waitAgain = { $who } als wartend markieren
actions-names-follow = Folgen ändern: { $who }
actions-names-title = Betreff ändern: { $who }
actions-names-archive = Archivierung ändern: { $who }
actions-names-unread = { $who } als ungelesen markieren

actions-kept = { $what }: wartet, bis Sie wieder online sind
actions-busy = { $what } …
actions-refused = „{ $what }“ ist fehlgeschlagen: { $why }
actions-notSaved = Noch nicht gespeichert
actions-notSavedHint = Wartet, bis Sie wieder online sind
actions-allRead = Alle Konversationen als gelesen markiert.
actions-readAll = Alle Konversationen als gelesen markieren
actions-unreadAgain = Wieder als ungelesen markieren
actions-unopenable = { $n ->
    [one] { $n } Entwurf oder nicht gesendete Nachricht in diesem Browser lässt sich nicht entschlüsseln, weil das Geheimnis des Dienstes ersetzt wurde. Sie wurde nicht gesendet.
   *[other] { $n } Entwürfe oder nicht gesendete Nachrichten in diesem Browser lassen sich nicht entschlüsseln, weil das Geheimnis des Dienstes ersetzt wurde. Sie wurden nicht gesendet.
}
actions-undo = Rückgängig
actions-nothingToUndo = Es gibt nichts rückgängig zu machen.
actions-undoing = „{ $what }“ rückgängig machen
actions-undone = Rückgängig gemacht: { $what }
actions-cantUndo = { $by ->
    [none] „{ $what }“ lässt sich nicht rückgängig machen: Jemand anderes hat inzwischen etwas geändert.
   *[other] „{ $what }“ lässt sich nicht rückgängig machen: { $by } hat inzwischen etwas geändert.
}
actions-cantUndoSome = „{ $what }“ lässt sich für { $n } von { $all } nicht rückgängig machen: Jemand anderes hat sie inzwischen geändert.
actions-sent = Ihre Antwort an { $who } war bereits gesendet.
actions-restored = { $who }: wie zuvor. Ihre Antwort war bereits gesendet.

unopened-title = Nicht entschlüsselbare Texte
unopened-show = Anzeigen
unopened-open = Konversation öffnen
unopened-remove = Entfernen
unopened-removeAll = Alle entfernen
unopened-why = Diese Texte sind mit einem Schlüssel verschlüsselt, den der Dienst nicht mehr hat, weil sein Geheimnis ersetzt wurde. Sie wurden nicht gesendet. Wenn der Betreiber das alte Geheimnis wiederherstellt, lassen sie sich wieder öffnen.
unopened-reply = Entwurf einer Antwort
unopened-note = Entwurf einer Notiz
unopened-message = Nicht gesendete Nachricht oder Änderung
unopened-none = Keine nicht entschlüsselbaren Texte.

conversation-rename = Betreff ändern
conversation-subject = Betreff
conversation-subjectHint = Leer lassen, wenn es keinen Betreff gibt.
conversation-delete = Konversation löschen
conversation-deleted = Konversation gelöscht.
conversation-askFor = löschen
conversation-losesMessages = { $n ->
    [one] ihre Nachricht, mit Dateien
   *[other] ihre { $n } Nachrichten, mit Dateien
}
conversation-losesNotes = Notizen, Entwürfe und geplante Antworten
conversation-losesEvents = ihre Ereignisse, sodass Backends sie nicht mehr im Feed finden
conversation-stays-1 = der Kontakt und seine übrigen Konversationen
conversation-stays-2 = bereits erfolgte Zustellungen an Webhooks

dialogs-assign = Zuweisen an
dialogs-me = Mich
dialogs-unassigned = Nicht zugewiesen
dialogs-teams = Teams
dialogs-people = Personen
dialogs-filterPeople = Name einer Person oder eines Teams
dialogs-noPeople = Keine passenden Personen oder Teams.
dialogs-snooze = Zurückstellen bis
dialogs-laterToday = Später heute
dialogs-tomorrow = Morgen
dialogs-nextWeek = Nächste Woche
dialogs-date = Datum und Uhrzeit
dialogs-until = Bis
dialogs-snoozeIt = Zurückstellen
dialogs-inPast = Dieser Zeitpunkt liegt in der Vergangenheit.
dialogs-tags = Schlagwörter
dialogs-tagPlaceholder = Schlagwort hinzufügen
dialogs-createTag = „{ $name }“ anlegen
dialogs-removeTag = { $name } entfernen
dialogs-tagsOf = { $n ->
    [one] Schlagwörter von { $n } Konversation
   *[other] Schlagwörter von { $n } Konversationen
}
dialogs-tagOnSome = { $n } von { $all }
dialogs-tagState = { $state ->
    [mixed] { $name }: unverändert
    [true] { $several ->
        [true] { $name }: bei allen
       *[false] { $name }: hinzugefügt
    }
   *[false] { $several ->
        [true] { $name }: bei keiner
       *[false] { $name }: entfernt
    }
}
dialogs-noTags = Noch keine Schlagwörter: Geben Sie eines ein und drücken Sie die Eingabetaste.
dialogs-start = Neue Konversation
dialogs-to = An
dialogs-findContact = Name, E-Mail oder externe ID
dialogs-subject = Betreff
dialogs-message = Erste Nachricht
dialogs-startIt = Beginnen
dialogs-startFailed = Die Konversation konnte nicht begonnen werden: { $why }
dialogs-chooseContact = Kontakt auswählen
dialogs-newContact = Neuer Kontakt mit externer ID „{ $id }“
dialogs-help = Tastenkürzel
dialogs-settings = Einstellungen
dialogs-theme = Darstellung
dialogs-themes-system = Wie im System
dialogs-themes-light = Hell
dialogs-themes-dark = Dunkel
dialogs-rows = Jede Konversation in der Liste zeigt
dialogs-rowParts-words = Letzte Nachricht
dialogs-rowParts-tags = Schlagwörter
dialogs-rowParts-waits = Wartezeit
dialogs-rowParts-assignee = Zuständig
dialogs-singleKeys = Tastenkürzel mit einer Taste
dialogs-singleKeysText = Buchstaben wie e und r wirken, wenn kein Feld aktiv ist.
dialogs-advance = Nach dem Schließen die nächste Konversation öffnen
dialogs-undoSend = Senden zurücknehmen
dialogs-undoChoices-0 = Aus
dialogs-undoChoices-5 = 5 s
dialogs-undoChoices-10 = 10 s
dialogs-undoChoices-20 = 20 s
dialogs-undoChoices-30 = 30 s
dialogs-undoChoices-auto = Nur bei langen Antworten (5 s)
dialogs-undoText = Der Dienst hält jede Antwort so lange zurück, damit Sie sie zurücknehmen können. Sie wird auch gesendet, wenn Sie den Desk schließen.
dialogs-signOut = Abmelden
dialogs-signOutKept = { $n ->
    [one] { $n } Nachricht oder Änderung hat den Dienst noch nicht erreicht. Beim Abmelden wird sie verworfen.
   *[other] { $n } Nachrichten und Änderungen haben den Dienst noch nicht erreicht. Beim Abmelden werden sie verworfen.
}
dialogs-signOutDrafts = { $n ->
    [one] { $n } Entwurf ist nur auf diesem Gerät gespeichert. Beim Abmelden wird er verworfen.
   *[other] { $n } Entwürfe sind nur auf diesem Gerät gespeichert. Beim Abmelden werden sie verworfen.
}
dialogs-stay = Angemeldet bleiben
dialogs-delete = Löschen

receipts-title = Zustellung dieser Nachricht
receipts-none = Noch keine Endpunkte oder Stream-Abonnenten.
receipts-sending = Wird gesendet …
receipts-log = Zustellungsprotokoll
receipts-again = Erneut senden
receipts-failed = Konnte nicht erneut gesendet werden: { $why }
receipts-sent = Wird erneut an { $name } gesendet.
receipts-onItsWay = Bereits unterwegs zu { $name }.
receipts-heard = { $id } hat sie bestätigt
receipts-behind = { $id } hat sie noch nicht bestätigt
receipts-away = { $id } ist nicht verbunden und hat sie nicht bestätigt
receipts-consumer = Stream-Abonnent

rewrite-redact = Diese Nachricht schwärzen
rewrite-redactIt = Schwärzen
rewrite-delete = Diese Nachricht löschen
rewrite-redacted = Nachricht geschwärzt.
rewrite-deleted = Nachricht gelöscht.
rewrite-text = Wählen Sie den Text aus, der geschwärzt werden soll
rewrite-addRange = Auswahl schwärzen
rewrite-keepRange = Behalten
rewrite-selectFirst = Wählen Sie zuerst einen Teil des Textes aus.
rewrite-allText = Alles schwärzen
rewrite-file = Datei { $name } entfernen
rewrite-redactText = Geschwärzter Text wird für alle durch Sternchen ersetzt: in gespeicherten Ereignissen, in der Suche und in wartenden Zustellungen.
rewrite-forGood = Das lässt sich nicht rückgängig machen. Kopien, die Ihre eigenen Systeme bereits erhalten haben, bleiben dort.
rewrite-losesMessage = Die Nachricht
rewrite-losesText = „{ $text }“
rewrite-losesFile = Die Datei { $name }
rewrite-losesElsewhere = Ihr Text in gespeicherten Ereignissen, in der Suche und in wartenden Zustellungen
rewrite-stays-1 = Kopien in Ihren eigenen Systemen
rewrite-stays-2 = Der Rest der Konversation

voice-label = Sprache
voice-record = Aufnehmen
voice-stop = Beenden und verwenden
voice-cancel = Abbrechen
voice-mode = Verwenden als
voice-modes-smart = Antwort aus Stichworten
voice-modes-dictate = wörtliches Diktat
voice-listening = Aufnahme läuft
voice-working = Wird transkribiert …
voice-insecure = Das Mikrofon benötigt https.
voice-refused = Der Browser hat den Zugriff auf das Mikrofon verweigert.
voice-empty = Es wurde keine Sprache erkannt.
voice-tooLong = Aufnahme beendet: maximale Länge erreicht.
voice-failed = Die Aufnahme konnte nicht verwendet werden: { $why }
voice-done = Der Entwurf ist im Editor. Es wurde nichts gesendet.

palette-label = Befehle
palette-placeholder = Befehl oder Namen eingeben
palette-here = Diese Konversation
palette-selection = { $n ->
    [one] { $n } Konversation ausgewählt
   *[other] { $n } Konversationen ausgewählt
}
palette-go = Gehe zu
palette-view = Diese Ansicht
palette-assign = Zuweisen an
palette-desk = Der Desk
palette-nothing = Keine passenden Befehle
palette-found = { $n ->
    [one] { $n } Befehl
   *[other] { $n } Befehle
}

commands-palette = Alle Befehle
commands-search = Suchen
commands-help = Tastenkürzel
commands-filter = Diese Ansicht filtern …
commands-start = Neue Konversation
commands-viewMine = Meine
commands-viewMentions = Erwähnungen
commands-viewFollowing = Gefolgt
commands-viewWaiting = Unbeantwortet
commands-viewUnassigned = Nicht zugewiesen
commands-viewTeam = Ihr Team
commands-viewSnoozed = Zurückgestellt
commands-viewAll = Alle Konversationen
commands-next = Nächste in der Liste
commands-previous = Vorherige in der Liste
commands-openRow = Öffnen
commands-nextConversation = Nächste Konversation
commands-previousConversation = Vorherige Konversation
commands-select = Auswählen
commands-extendDown = Auswahl nach unten erweitern
commands-extendUp = Auswahl nach oben erweitern
commands-selectAll = Alle geladenen auswählen
commands-reply = Antworten
commands-note = Notiz schreiben
commands-send = Senden
commands-useAsReply = Notiz als Antwort verwenden
commands-useAsNote = Antwort als Notiz verwenden
commands-sendClose = Senden und schließen
commands-sendLater = Antwort später senden …
commands-bold = Fett
commands-italic = Kursiv
commands-code = Code
commands-link = Link (mit einer Auswahl)
commands-snippets = Textbaustein einfügen (auch / am Wortanfang)
commands-undo = Rückgängig
commands-ticket = Neues Ticket aus dieser Konversation
commands-openTicket = Ticket öffnen
commands-linkTicket = Ticket verknüpfen …
commands-unlinkTicket = Verknüpfung mit dem Ticket lösen
commands-merge = Zusammenführen mit …
commands-unmerge = Zusammenführung rückgängig machen
commands-split = Nachrichten in eine neue Konversation abzweigen …
commands-waitAgain = Wieder auf eine Antwort warten
commands-reopen = Wieder öffnen
commands-unread = Als ungelesen markieren
commands-follow = Folgen
commands-unfollow = Nicht mehr folgen
commands-rename = Betreff ändern …
commands-archive = Archivieren
commands-unarchive = Aus dem Archiv holen
commands-copyLink = Link kopieren
commands-block = Kontakt blockieren oder Blockierung aufheben …
commands-remove = Konversation löschen …
commands-readAll = Alle als gelesen markieren
commands-context = Kontakt ein- oder ausblenden
commands-timeline = Verlauf
commands-back = Zurück

notifications-message = Neue Nachricht
notifications-you = Ihnen
notifications-note = { $text ->
    [none] Neue Notiz von { $who }
   *[other] Notiz von { $who }: { $text }
}
notifications-assigned = { $who } hat diese Konversation { $to } zugewiesen
notifications-several = { $n ->
    [one] { $n } Benachrichtigung
   *[other] { $n } Benachrichtigungen
} in { $of ->
    [one] { $of } Konversation
   *[other] { $of } Konversationen
}

commandGroups-list = Liste
commandGroups-go = Gehe zu
commandGroups-conversation = Konversation
commandGroups-composer = Schreiben
commandGroups-anywhere = Überall

problems-offline = der Dienst antwortet nicht
