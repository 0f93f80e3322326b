any = Beliebig
search = Suchen
filters = Filter
period = Zeitraum
since = Seit
at = Zeit
changed = Geändert
created = Erstellt
actions = Aktionen
yes = Ja
no = Nein
csv = Als CSV
nothingFound = Keine Ergebnisse
periods-7 = 7 Tage
periods-30 = 30 Tage
periods-90 = 90 Tage
periods-365 = Ein Jahr
downloadFailed = Die Datei konnte nicht heruntergeladen werden: { $why }
fieldNames-name = Name
fieldNames-trigger = Auslöser
fieldNames-status = Status

pages-surveys = Umfragen
pages-reports = Berichte
pages-workflows = Workflows
pages-translations = Übersetzungen
pages-memory = Gedächtnis

editor-checking = Wird geprüft …
editor-sound = Keine Probleme.
editor-list = Probleme
editor-back = Änderungen verwerfen
editor-problems = { $n ->
    [one] { $n } Problem
   *[other] { $n } Probleme
}
editor-line = Zeile { $n }
editor-notJson = Ungültiges JSON: { $why }

surveys-add = Neue Umfrage
surveys-addText = Sie beginnt mit einer Bewertung und der Frage nach dem Grund. Ihre Definition können Sie danach bearbeiten.
surveys-create = Erstellen und bearbeiten
surveys-name = Name
surveys-status = Status
surveys-version = Version
surveys-responses = Antworten
surveys-language = Sprache
surveys-contact = Kontakt
surveys-firstQuestion = Wie wahrscheinlich ist es, dass Sie uns weiterempfehlen?
surveys-secondQuestion = Was ist der Grund für Ihre Bewertung?
surveys-thanks = Vielen Dank!
surveys-statuses-OPEN = Offen
surveys-statuses-CLOSED = Geschlossen
surveys-none = Noch keine Umfragen
surveys-noneText = Eine Umfrage bittet Kunden um eine Bewertung und deren Gründe.
surveys-more = Verwalten
surveys-rename = Umbenennen
surveys-close = Keine Antworten mehr sammeln
surveys-reopen = Wieder Antworten sammeln
surveys-remove = Umfrage löschen
surveys-nowIs = { $to ->
    [OPEN] Die Umfrage sammelt Antworten.
   *[other] Die Umfrage sammelt keine Antworten mehr.
}
surveys-removed = { $name } gelöscht.
surveys-loses-1 = { $n ->
    [one] { $n } Antwort
   *[other] { $n } Antworten
}
surveys-loses-2 = { $versions ->
    [one] { $versions } Version ihrer Definition
   *[other] { $versions } Versionen ihrer Definition
}
surveys-loses-3 = Ihre Erkenntnisse: Themen, Treiber, Segmente und Hinweise
surveys-contactsStay = Die Kontakte, die geantwortet haben, und ihre Konversationen.
surveys-parts = Teile der Umfrage
surveys-partNames-figures = Kennzahlen
surveys-partNames-responses = Antworten
surveys-partNames-definition = Definition
surveys-partNames-versions = Versionen
surveys-definition = Definition
surveys-published = Veröffentlicht.
surveys-isPublished = veröffentlicht
surveys-nothingChanged = Nichts zu veröffentlichen.
surveys-definitionText = Version { $n } ist veröffentlicht. Ihre Änderungen werden sofort geprüft und gelten, sobald Sie sie veröffentlichen. Antworten behalten die Version, auf die sie sich beziehen.
surveys-definitionRead = Version { $n } ist veröffentlicht. Mit Ihrer Rolle können Sie nur lesen.
surveys-publish = Version { $n } veröffentlichen
surveys-publishAgain = Diese Definition erneut veröffentlichen
surveys-versionNumber = Version { $n }
surveys-answers = Antworten
surveys-answer = Antwort
surveys-anonymous = anonym
surveys-noAnswers = Keine Antworten
surveys-response = Eine Antwort
surveys-csv = Als CSV
surveys-removeResponse = Diese Antwort löschen
surveys-responseRemoved = Antwort gelöscht.
surveys-losesResponse-1 = Alle Angaben dieser Antwort
surveys-losesResponse-2 = Ihre Zitate in den Erkenntnissen
surveys-noResponses = Noch keine Antworten
surveys-noResponsesText = Ihr Backend speichert Antworten über die API oder importiert sie.
surveys-allVersions = Alle vergleichbaren Versionen
surveys-questions = Antworten auf jede Frage
surveys-times = Antworten
surveys-share = Anteil
surveys-scoreNames-nps = NPS
surveys-scoreNames-csat = CSAT, %
surveys-scoreNames-ces = CES
surveys-scoreNames-rating = Bewertung
surveys-scoreNames-number = Mittelwert
surveys-types-nps = NPS
surveys-types-csat = CSAT
surveys-types-ces = CES
surveys-types-rating = Bewertung
surveys-types-single_choice = Eine Auswahl
surveys-types-multiple_choice = Mehrere Auswahlen
surveys-types-text = Text
surveys-types-number = Zahl
surveys-types-date = Datum
surveys-types-boolean = Ja oder nein
surveys-ofAnswers = { $n ->
    [one] { $n } Antwort
   *[other] { $n } Antworten
}
surveys-scoreOver = { $name } im Zeitverlauf
surveys-responsesOver = Antworten im Zeitverlauf
surveys-scoreSummary = Die Bewertung im Zeitverlauf, von { $from } bis { $to }.
surveys-responsesSummary = Die Zahl der Antworten im Zeitverlauf, { $n } insgesamt.
surveys-insights = Erkenntnisse
surveys-noInsights = Noch keine Erkenntnisse. „Aktualisieren“ berechnet sie aus den neuesten Antworten.
surveys-refresh = Aktualisieren
surveys-refreshing = Wird berechnet
surveys-computed = Berechnet
surveys-refreshFailed = Die letzte Aktualisierung ist fehlgeschlagen: { $why }
surveys-themes = Themen
surveys-theme = Thema
surveys-mentions = Erwähnungen
surveys-sentiment = Stimmung
surveys-sentiments-positive = positiv
surveys-sentiments-neutral = neutral
surveys-sentiments-negative = negativ
surveys-drivers = Treiber
surveys-impact = Einfluss
surveys-segments = Segmente
surveys-size = Größe
surveys-score = Bewertung
surveys-severities-info = Hinweis
surveys-severities-warning = Warnung
surveys-severities-critical = Kritisch
surveys-quotes = { $n ->
    [one] { $n } Zitat
   *[other] { $n } Zitate
}

reports-by = Nach
reports-groups-day = Tag
reports-groups-agent = Agent
reports-groups-team = Team
reports-groups-channel = Kanal
reports-groups-tag = Schlagwort
reports-without-agent = Nicht zugewiesen
reports-without-team = Nicht zugewiesen
reports-without-channel = Kein Kanal
reports-without-tag = Kein Schlagwort
reports-channel = Kanal
reports-allChannels = Alle Kanäle
reports-tags = Schlagwörter
reports-tagsHint = Alle Schlagwörter
reports-severalTags = Eine Konversation mit mehreren Schlagwörtern zählt bei jedem davon, daher können die Zeilen zusammen mehr als die Gesamtzahl ergeben.
reports-deleted = Gelöscht
reports-nothing = Keine Daten für diesen Zeitraum
reports-names-first--response = Erste Antwort
reports-names-time--to--close = Zeit bis zum Schließen
reports-names-csat = CSAT
reports-names-volume = Aufkommen
reports-names-backlog = Rückstand
reports-texts-first--response = Wie lange Kontakte auf die erste Antwort eines Agenten gewartet haben. Bots zählen nicht.
reports-texts-time--to--close = Wie lange Konversationen offen waren, von der Erstellung oder letzten Wiedereröffnung bis zum Schließen.
reports-texts-csat = Die Bewertungen der Konversationen. CSAT ist der Prozentsatz der Bewertungen von 7 bis 10.
reports-texts-volume = Erstellte, geschlossene und wieder geöffnete Konversationen sowie Nachrichten nach Verfasser.
reports-texts-backlog = Konversationen, die jetzt offen sind; nach Tagen die, die am Ende jedes Tages offen waren.
reports-figures-median = Median
reports-figures-mean = Mittelwert
reports-figures-p90 = 90. Perzentil
reports-figures-count = Anzahl
reports-figures-csat = CSAT
reports-figures-average = Durchschnittliche Bewertung
reports-figures-conversationsCreated = Erstellt
reports-figures-conversationsClosed = Geschlossen
reports-figures-conversationsReopened = Wieder geöffnet
reports-figures-messages = Nachrichten
reports-figures-contactMessages = von Kunden
reports-figures-agentMessages = von Agenten
reports-figures-botMessages = von Bots
reports-figures-open = Offen
reports-figures-waiting = Wartend
reports-omitted = { $n ->
    [one] { $n } weitere Gruppe; ein Bericht hat höchstens 1.000 Zeilen.
   *[other] { $n } weitere Gruppen; ein Bericht hat höchstens 1.000 Zeilen.
}
reports-summary = { $title } im Zeitverlauf. { $figure } des gesamten Zeitraums: { $value }.
reports-units-seconds = Sekunden
reports-units-minutes = Minuten
reports-units-hours = Stunden
reports-units-days = Tage
reports-lasted-seconds = { $n } s
reports-lasted-minutes = { $n } min
reports-lasted-hours = { $n } h
reports-lasted-days = { $n } d
reports-counted-first--response = { $n ->
    [0] Keine ersten Antworten
    [one] { $n } erste Antwort
   *[other] { $n } erste Antworten
}
reports-counted-time--to--close = { $n ->
    [0] Nichts geschlossen
    [one] { $n } Mal geschlossen
   *[other] { $n } Mal geschlossen
}
reports-counted-csat = { $n ->
    [0] Keine Bewertungen
    [one] { $n } Bewertung
   *[other] { $n } Bewertungen
}
reports-few = { $counted }: zu wenige für einen Vergleich
reports-fewOfRow = zu wenige für einen Vergleich
reports-compare = Vergleichen
reports-compareWith-before = Mit dem Zeitraum davor
reports-compareWith-off = Aus
reports-before = { $figure } davor
reports-change = Änderung
reports-nothingBefore = Im Zeitraum davor gibt es nichts zu vergleichen
reports-unchanged = Unverändert gegenüber { $was }
reports-onlyBefore = , davor nur { $counted }
reports-up = { $share ->
    [none] { $by } mehr als { $was }
   *[other] { $by } mehr als { $was } ({ $share })
}
reports-down = { $share ->
    [none] { $by } weniger als { $was }
   *[other] { $by } weniger als { $was } ({ $share })
}
reports-points = { $n } Punkte
reports-beforeDay = Davor: { $day }
reports-beforeFailed = Der Zeitraum davor konnte nicht geladen werden: { $why }
reports-compared = Verglichen mit { $from } bis { $to }, denselben Wochentagen, bis zur selben Tageszeit.

workflows-add = Neuer Workflow
workflows-addText = Er beginnt mit einer Nachricht und übergibt an einen Agenten. Seine Abläufe können Sie danach bearbeiten.
workflows-create = Erstellen und bearbeiten
workflows-name = Name
workflows-trigger = Startet
workflows-version = Version
workflows-none = Noch keine Workflows
workflows-noneText = Ein Workflow antwortet Kunden Schritt für Schritt und übergibt an einen Agenten.
workflows-triggers-conversation__created = Mit jeder neuen Konversation
workflows-triggers-manual = Von Hand
workflows-firstText = Hallo! Gleich ist jemand für Sie da.
workflows-more = Verwalten
workflows-edit = Name und Start
workflows-remove = Workflow löschen
workflows-loses-1 = Der Workflow mit allen seinen Versionen
workflows-loses-2 = Der Verlauf seiner beendeten Durchläufe
workflows-stays-1 = Laufende Durchläufe: Sie laufen bis zu ihrem Ende weiter.
workflows-removed = { $name } gelöscht.
workflows-parts = Teile des Workflows
workflows-partNames-picture = Diagramm
workflows-partNames-definition = Definition
workflows-partNames-try = Ausprobieren
workflows-partNames-runs = Durchläufe
workflows-partNames-versions = Versionen
workflows-definition = Abläufe
workflows-published = Veröffentlicht.
workflows-isPublished = veröffentlicht
workflows-nothingChanged = Nichts zu veröffentlichen.
workflows-publishAgain = Diese Abläufe erneut veröffentlichen
workflows-versionsText = Die neuesten 100 Versionen werden aufbewahrt, ältere, solange sie Durchläufe haben.
workflows-definitionText = Version { $n } ist veröffentlicht. Ihre Änderungen werden sofort geprüft und gelten, sobald Sie sie veröffentlichen. Laufende Durchläufe behalten ihre Version.
workflows-definitionRead = Version { $n } ist veröffentlicht. Mit Ihrer Rolle können Sie nur lesen.
workflows-publish = Version { $n } veröffentlichen
workflows-versionNumber = Version { $n }
workflows-flowsOf = Abläufe von Version { $n }
workflows-waitNow = Warten gerade
workflows-stoppedRuns = Angehalten
workflows-showThem = Anzeigen
workflows-tryThese = Diese Abläufe ausprobieren
workflows-times = { $n ->
    [one] { $n } Durchlauf
   *[other] { $n } Durchläufe
}
workflows-oldVersions = { $n ->
    [one] Auch { $n } Durchlauf einer älteren Version wartet.
   *[other] Auch { $n } Durchläufe älterer Versionen warten.
}
workflows-outcomes-completed = Abgeschlossen
workflows-outcomes-handed_off = Übergeben
workflows-stopped = Angehalten
workflows-whyStopped-step_limit = Nach 1.000 Aktionen angehalten: vermutlich eine Schleife.
workflows-whyStopped-attributes_full = Die Konversation hätte zu viele Attribute gehabt.
workflows-whyStopped-assignee_gone = Das zugewiesene Team oder den Benutzer gibt es nicht mehr.
workflows-flow = Ablauf { $id }
workflows-begins = beginnt hier
workflows-nextAction = nächste Aktion
workflows-theEnd = Ende
workflows-otherwise = sonst
workflows-anyText = beliebiger Text
workflows-branchOn = nach
workflows-waitsHere = wartet hier
workflows-since = seit
workflows-wait = { $n } wartend
workflows-lasts-seconds = { $n } s
workflows-lasts-minutes = { $n } min
workflows-lasts-hours = { $n } h
workflows-to-user = An den Benutzer
workflows-to-team = An das Team
workflows-actions-message = Nachricht
workflows-actions-buttons = Schaltflächen
workflows-actions-form = Formular
workflows-actions-wait = Warten
workflows-actions-assign = Zuweisen
workflows-actions-set_attributes = Attribute setzen
workflows-actions-branch = Verzweigung
workflows-actions-close = Konversation schließen
workflows-actions-hand_off = An einen Agenten übergeben
workflows-state = Zustand
workflows-states-waiting = Wartend
workflows-states-ended = Beendet
workflows-states-stopped = Angehalten
workflows-conversation = Konversation
workflows-waitsAt = Wartet bei
workflows-endedAt = Beendet bei
workflows-waitsSince = Seit
workflows-ended = Beendet
workflows-goesOn = Geht weiter
workflows-withAnswer = mit einer Antwort
workflows-how = Ergebnis
workflows-unknownSince = unbekannt
workflows-noRuns-waiting = Wartet nirgends
workflows-noRuns-ended = Noch keine beendeten Durchläufe
workflows-noRuns-stopped = Keine angehaltenen Durchläufe
workflows-stepOf = { $flow }, Aktion { $action }
workflows-tryIt = Ausprobieren
workflows-tryText = Es wird nichts gespeichert oder gesendet. Wartezeiten enden sofort.
workflows-attributes = Attribute der Konversation
workflows-attributesHint = Eines pro Zeile, zum Beispiel plan = pro. Werte können JSON sein.
workflows-attributesNow = Attribute
workflows-course = Was passiert
workflows-options = Optionen
workflows-answer = Antwort
workflows-orText = Oder eingeben
workflows-fromStart = Von vorn beginnen
workflows-stepBack = Letzte Antwort zurücknehmen
workflows-nothingFilledIn = (nichts ausgefüllt)
workflows-did-message = Der Bot:{ " " }
workflows-did-answer = Der Kontakt:{ " " }
workflows-did-assigned = Zugewiesen an
workflows-did-attributes = Attribute:
workflows-did-closed = Die Konversation ist geschlossen.
workflows-did-waited = { $n } s später.

translations-add = Neuer Eintrag
translations-create = Erstellen
translations-type = Typ
translations-key = ID
translations-keyHint = Ein Schlüssel Ihrer Wahl; bei den anderen Typen 24 hexadezimale Ziffern.
translations-fieldName = Name des Feldes
translations-entry = Eintrag
translations-there = Sprachen
translations-show = Anzeigen
translations-missingOnly = Fehlende
translations-all = Alle
translations-language = Sprache
translations-into = Nach
translations-progress = Fehlend je Sprache
translations-none = Noch keine Einträge
translations-types-statictranslation = Oberflächentext
translations-types-article = Artikel
translations-types-collection = Sammlung
translations-types-emailtemplate = E-Mail-Vorlage
translations-more = Verwalten
translations-addField = Feld hinzufügen
translations-remove = Eintrag löschen
translations-thenNext = Danach den nächsten fehlenden Eintrag öffnen
translations-noSource = (fehlt)
translations-nowhere = Kein Text in dieser Sprache oder der Hauptsprache.
translations-fields = Felder
translations-textIn = Text, { $language }
translations-fieldIn = { $name }, { $language }
translations-lacks = { $n ->
    [0] { $language }: vollständig
    [one] { $language }: { $n } fehlt
   *[other] { $language }: { $n } fehlen
}
translations-complete = Auf { $language } fehlt nichts
translations-lacking = fehlt auf { $language }
translations-saved = Auf { $language } gespeichert.
translations-removeLanguage = { $language } löschen
translations-losesLanguage-1 = Die Texte dieses Eintrags auf { $language }
translations-losesEntry-1 = Der Eintrag in allen seinen Sprachen: { $languages }

memory-choose = Wählen Sie einen Kontakt aus, um sein Gedächtnis zu sehen.
memory-contact = Kontakt
memory-contacts = Kontakte
memory-email = E-Mail
memory-userId = Externe ID
memory-none = Noch keine Kontakte
memory-name = Name
memory-nameHint = Zum Beispiel „Schuhgröße“. Ein Eintrag mit demselben Namen wird ersetzt.
memory-content = Inhalt
memory-description = Quelle
memory-add = Hinzufügen
memory-change = Eintrag bearbeiten
memory-saved = Gespeichert.
memory-forget = Löschen
memory-clear = Alle löschen
memory-forgotten = Gelöscht.
memory-nothing = Noch keine Gedächtniseinträge
memory-nothingText = Bots und Agenten speichern hier Fakten für die nächste Konversation.
memory-off = Das Gedächtnis ist ausgeschaltet
memory-offText = Es ist in den Einstellungen des Projekts ausgeschaltet. Vorhandene Einträge bleiben erhalten, werden aber nicht angezeigt.
memory-losesOne = Der Eintrag „{ $name }“
memory-losesAll = Alle Gedächtniseinträge von { $name }
memory-stays = Der Kontakt und die Konversationen.
