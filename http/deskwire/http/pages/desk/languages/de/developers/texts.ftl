pages-webhooks = Webhooks
pages-consumers = Stream-Abonnenten
pages-events = Live-Protokoll
pages-history = Zeitreise

save = Speichern
saved = Gespeichert
close = Schließen
none = –
yes = ja
no = nein
ms = { $ms } ms
seconds = { $s } s
minutes = { $m } min
percent = { $n } %
status-delivered = zugestellt
status-dropped = verworfen
status-skipped = übersprungen
status-pending = ausstehend

webhooks-endpoint = Endpunkt
webhooks-health = Zustand
webhooks-share = Erfolgsquote (24 h)
webhooks-waits = Rückstand
webhooks-lastDelivery = Letzte Zustellung
webhooks-register = Endpunkt registrieren
webhooks-empty = Noch keine Endpunkte
webhooks-emptyText = Registrieren Sie die Adresse Ihres Dienstes, um jedes Ereignis signiert zu erhalten.
webhooks-registered = Endpunkt registriert
webhooks-secretText = Ihr Dienst prüft mit diesem Geheimnis die Signatur jeder Zustellung.
webhooks-arrivedOf = { $n } von { $of } zugestellt
webhooks-held = { $n } angehalten
webhooks-missed = { $n } verpasst
webhooks-heldSince = { $n ->
    [one] { $n } Zustellung ist angehalten, die älteste seit { $since }
   *[other] { $n } Zustellungen sind angehalten, die älteste seit { $since }
}
webhooks-missedSince = { $n ->
    [one] { $n } Zustellung wurde seit { $since } verpasst und wird wiederholt
   *[other] { $n } Zustellungen wurden seit { $since } verpasst und werden wiederholt
}

form-url = Adresse
form-urlHint = Eine https-Adresse, die dieser Dienst erreichen kann.
form-description = Name
form-descriptionHint = Agenten sehen ihn bei ihren Nachrichten, z. B. crm.
form-events = Ereignisse
form-all = Alle Ereignisse des Vertrags
form-allText = Alle Ereignisse zu Konversationen, Nachrichten und Kontakten außer dem Tippen.
form-these = Diese Ereignisse
form-contract = Konversationen, Nachrichten, Kontakte
form-typing = Tippen
form-extensions = Über den Vertrag hinaus
form-internal = Notizen der Agenten
form-catchUp = Automatisch nachholen
form-catchUpText = Verpasste Ereignisse erneut senden, sobald der Endpunkt wieder erreichbar ist.
form-change = Endpunkt bearbeiten
form-registerIt = Registrieren

endpoint-test = Test senden
endpoint-testing = Wird gesendet …
endpoint-more = Mehr
endpoint-rotate = Geheimnis ersetzen
endpoint-disable = Deaktivieren
endpoint-enable = Aktivieren
endpoint-enabled = Endpunkt aktiviert.
endpoint-delete = Löschen
endpoint-deleted = Endpunkt gelöscht.
endpoint-rotateText = Der Endpunkt erhält ein neues Geheimnis. Zustellungen werden noch 24 Stunden lang auch mit dem alten signiert, damit Sie Ihren Dienst ohne Lücke umstellen können.
endpoint-rotated = Stellen Sie Ihren Dienst innerhalb von 24 Stunden um. Bis dahin wird mit beiden Geheimnissen signiert.
endpoint-disableLoses = Wartende Ereignisse und alle weiteren bis zur erneuten Aktivierung werden übersprungen.
endpoint-disableStays = Übersprungene Ereignisse lassen sich nach der Aktivierung nachholen, solange sie gespeichert sind.
endpoint-deleteLoses = Der Endpunkt und sein Geheimnis: Er erhält keine weiteren Ereignisse.
endpoint-deleteLog = Sein Zustellungsprotokoll.
endpoint-deleteStays = Alle Ereignisse, Konversationen und anderen Endpunkte.
endpoint-nextProbe = Nächste Prüfung
endpoint-apiVersion = Version der Ereignisse
endpoint-secret = Geheimnis
endpoint-oldUntil = das vorherige signiert ebenfalls bis { $until }

figures-byHour = Zustellungen pro Stunde
figures-byDay = Zustellungen pro Tag
figures-since = Zeit
figures-lost = verworfen oder übersprungen
figures-days = { $n ->
    [one] 24 h
   *[other] { $n } Tage
}
figures-title = { $delivered } zugestellt, { $lost } verworfen oder übersprungen, { $held } ausstehend
figures-latency = { $n ->
    [one] Latenz der letzten { $n } erfolgreichen Zustellung: Median { $p50 }, 99. Perzentil { $p99 }.
   *[other] Latenz der letzten { $n } erfolgreichen Zustellungen: Median { $p50 }, 99. Perzentil { $p99 }.
}

log-title = Zustellungen
log-filters = Filter
log-when = Zeit
log-event = Ereignis
log-outcome = Ergebnis
log-attempts = Versuche
log-actions = Aktionen
log-conversation = Konversation
log-since = Seit
log-any = beliebig
log-again = erneut
log-notYet = Noch ist kein Versuch abgeschlossen.
log-none = Noch keine Zustellungen
log-noneText = Senden Sie einen Test oder warten Sie auf ein Ereignis.
log-noneFits = Keine Zustellung entspricht diesen Filtern
log-clear = Filter zurücksetzen
log-answered = Antwort { $status } nach { $took }

delivery-title = Zustellung
delivery-made = Erstellt
delivery-next = Nächster Versuch
delivery-repeats = Wiederholt
delivery-repeated = Erneut gesendet als
delivery-id = ID
delivery-history = Konversation zu diesem Zeitpunkt
delivery-noAttempt = Keine Versuche.
delivery-answer = Antwort (erstes KiB)
delivery-event = Daten des Ereignisses
delivery-noEvent = Das Ereignis ist nicht mehr gespeichert oder war ein Test.
delivery-later = + { $after }

again-one = Erneut senden
again-sentOne = Wird erneut gesendet.
again-look = Anzeigen
again-failed = Konnte nicht erneut gesendet werden: { $why }
again-recover = Fehlgeschlagene Zustellungen nachholen
again-recoverShort = Nachholen …
again-recoverText = Alle in diesem Zeitraum verworfenen oder übersprungenen Zustellungen werden erneut gesendet, die ältesten zuerst.
again-since = Zeitraum
again-hours-1 = die letzte Stunde
again-hours-24 = 24 Stunden
again-days = { $n } Tage
again-replay = Konversation erneut senden
again-replayShort = Wiederholen …
again-replayText = Alle Ereignisse einer Konversation werden der Reihe nach erneut an diesen Endpunkt gesendet, auch bereits zugestellte.
again-conversation = Konversation
again-conversationHint = Ihre ID oder ihre Adresse im Desk.
again-from = Ab Nummer
again-to = Bis Nummer
again-counting = Wird gezählt …
again-disabled = Der Endpunkt ist deaktiviert. Aktivieren Sie ihn zuerst.
again-sendNone = Erneut senden
again-would = { $n ->
    [0] Es würden keine Ereignisse gesendet.
    [one] { $n } Ereignis würde gesendet.
   *[other] { $n } Ereignisse würden gesendet.
}
again-pending = { $n ->
    [one] { $n } Ereignis steht bereits aus.
   *[other] { $n } Ereignisse stehen bereits aus.
}
again-notStored = { $n ->
    [one] { $n } Ereignis ist nicht mehr gespeichert.
   *[other] { $n } Ereignisse sind nicht mehr gespeichert.
}
again-send = { $n ->
    [one] { $n } Ereignis erneut senden
   *[other] { $n } Ereignisse erneut senden
}
again-sent = { $n ->
    [one] { $n } Ereignis wird erneut gesendet.
   *[other] { $n } Ereignisse werden erneut gesendet.
}

consumers-consumer = Abonnent
consumers-state = Zustand
consumers-lag = Unbestätigt
consumers-channel = Kanal
consumers-confirmed = Bestätigt bis
consumers-since = Verbunden seit
consumers-end = Trennen
consumers-upToDate = aktuell
consumers-behind = im Rückstand
consumers-away = nicht verbunden
consumers-ofProject = das Projekt
consumers-ofConversation = die Konversation
consumers-ofContact = der Kontakt
consumers-none = Noch keine Abonnenten
consumers-noneText = Backends, die den Echtzeit-Stream abonnieren, erscheinen hier mit der Position, die sie bestätigt haben.
consumers-endTitle = Abonnenten { $id } trennen
consumers-ended = { $id } wurde getrennt.
consumers-loses = Die Verbindung wird mit 4009 geschlossen, und dieser Abonnent wird eine Minute lang abgewiesen.
consumers-stays = Die bestätigte Position: Der nächste Abonnent des Kanals setzt dort fort.

events-about = Worum es geht
events-live = live
events-waits = nicht verbunden
events-pause = Anhalten
events-resume = Fortsetzen
events-paused = angehalten, { $n } neu
events-copyCursor = Neueste Ereignis-ID kopieren
events-none = Keine Ereignisse
events-noneText = Kein gespeichertes Ereignis entspricht den Filtern. Ereignisse werden 7 Tage aufbewahrt.
events-reached = Zustellungen
events-log = Zustellungsprotokoll

history-of = Zeitreise: { $name }
history-toConversation = Zur Konversation
history-subject = Betreff
history-show = Verlauf anzeigen
history-recent = Zuletzt
history-none = Noch keine Konversationen
history-noEvents = Keine gespeicherten Ereignisse
history-noEventsText = Ereignisse werden 7 Tage aufbewahrt. Der Stand davor kann nicht gezeigt werden.
history-slider = Ereignis
history-back = Vorheriges Ereignis
history-on = Nächstes Ereignis
history-present = Zurück zur Gegenwart
history-asItIs = Gegenwart
history-then = Stand nach Ereignis { $n }
history-at = { $when ->
    [none] Nr. { $n } von { $last }
   *[other] Nr. { $n } von { $last }, { $when }
}
history-fields-status = Status
history-fields-assignee = Zuständig
history-fields-title = Betreff
history-fields-tags = Schlagwörter
history-fields-snoozedUntil = Zurückgestellt bis
history-fields-archived = Archiviert
history-fields-visible = Für den Kontakt sichtbar
history-fields-ticketId = Ticket
history-fields-rating = Bewertung
history-fields-attributes = Attribute
history-statuses-OPEN = offen
history-statuses-PENDING = ausstehend
history-statuses-CLOSED = geschlossen
history-nowIs = jetzt
history-messages = Nachrichten
history-note = Notiz
history-redacted = Geschwärzt
history-nothingSaid = Keine Nachrichten.
history-later = { $n ->
    [0] Keine späteren Nachrichten.
    [one] { $n } spätere Nachricht.
   *[other] { $n } spätere Nachrichten.
}
history-timeline = Verlauf
history-earlier = Früher
history-goTo = Zu Ereignis { $n }
history-authors-contact = Kontakt
history-authors-agent = Agent
history-authors-bot = Bot
history-authors-system = Deskwire

eventText-by = von { $who }
eventText-workflow = Workflow { $name }
eventText-actors-key = einem Serverschlüssel
eventText-actors-machine = einer Maschine
eventText-actors-system = Deskwire
eventText-actors-contact = dem Kontakt
eventText-began = Die Konversation hat begonnen
eventText-reopened = Wieder geöffnet
eventText-closed = Geschlossen von { $by }
eventText-closers-agent = einem Agenten
eventText-closers-bot = einem Bot
eventText-closers-system = Deskwire
eventText-assignedTo = { $name } zugewiesen
eventText-unassigned = Nicht mehr zugewiesen
eventText-updated = Geändert: { $what }
eventText-wrote = { $who } hat „{ $text }“ geschrieben
eventText-reached = der Browser des Kunden hat die Nachrichten bis Nr. { $n } erhalten
eventText-seen = der Kunde hat die Nachrichten bis Nr. { $n } gesehen
eventText-redacted = Eine Nachricht wurde geschwärzt
eventText-deleted = Eine Nachricht wurde gelöscht
eventText-asked = Der Workflow { $name } hat „{ $text }“ gefragt
eventText-ended = Der Workflow { $name } wurde { $how }
eventText-endings-completed = abgeschlossen
eventText-endings-handed_off = an einen Agenten übergeben
eventText-byStep = { $version ->
    [none] Durch Schritt { $action } von { $flow }
   *[other] Durch Schritt { $action } von { $flow }, Version { $version }
}
eventText-afterStep = { $text ->
    [none] Nach Schritt { $action } von { $flow }
   *[other] Nach Schritt { $action } von { $flow }: „{ $text }“
}
eventText-tagged = Schlagwort { $name } hinzugefügt
eventText-untagged = Schlagwort { $name } entfernt
eventText-snoozed = zurückgestellt bis { $until }
eventText-woke = Zurückstellung beendet
eventText-status-OPEN = auf „Offen“ gesetzt
eventText-status-PENDING = auf „Ausstehend“ gesetzt
eventText-status-CLOSED = geschlossen
eventText-named = Betreff in „{ $title }“ geändert
eventText-archived = archiviert
eventText-unarchived = aus dem Archiv geholt
eventText-unneeded = als „keine Antwort nötig“ vermerkt
eventText-needed = als wartend markiert
eventText-shown = dem Kontakt gezeigt
eventText-linked = ein Ticket wurde verknüpft
eventText-unlinked = die Verknüpfung mit dem Ticket wurde gelöst
