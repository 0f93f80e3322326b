selectAll = { $total ->
    [none] Alle in dieser Ansicht auswählen
   *[other] Alle { $total } in dieser Ansicht auswählen
}
allSelected = { $total ->
    [none] Alle in dieser Ansicht
   *[other] Alle { $total } in dieser Ansicht
}
notForAll = Das geht nur für ausgewählte Konversationen, nicht für eine ganze Ansicht.
tagsOfAll = Schlagwörter aller in dieser Ansicht
failed = Es konnten nicht alle Konversationen geändert werden: { $why }

doing-close = { $n ->
    [one] { $n } Konversation wird geschlossen
   *[other] { $n } Konversationen werden geschlossen
}
doing-reopen = { $n ->
    [one] { $n } Konversation wird wieder geöffnet
   *[other] { $n } Konversationen werden wieder geöffnet
}
doing-pending = { $n ->
    [one] { $n } Konversation wird auf „Ausstehend“ gesetzt
   *[other] { $n } Konversationen werden auf „Ausstehend“ gesetzt
}
doing-assign = { $n ->
    [one] { $n } Konversation wird zugewiesen
   *[other] { $n } Konversationen werden zugewiesen
}
doing-unassign = { $n ->
    [one] Die Zuweisung von { $n } Konversation wird aufgehoben
   *[other] Die Zuweisung von { $n } Konversationen wird aufgehoben
}
doing-tag = { $n ->
    [one] Die Schlagwörter von { $n } Konversation werden geändert
   *[other] Die Schlagwörter von { $n } Konversationen werden geändert
}
doing-snooze = { $n ->
    [one] { $n } Konversation wird zurückgestellt
   *[other] { $n } Konversationen werden zurückgestellt
}
doing-wake = { $n ->
    [one] Die Zurückstellung von { $n } Konversation wird beendet
   *[other] Die Zurückstellung von { $n } Konversationen wird beendet
}
doing-archive = { $n ->
    [one] { $n } Konversation wird archiviert
   *[other] { $n } Konversationen werden archiviert
}
doing-unarchive = { $n ->
    [one] { $n } Konversation wird aus dem Archiv geholt
   *[other] { $n } Konversationen werden aus dem Archiv geholt
}
doing-noAnswerNeeded = { $n ->
    [one] Für { $n } Konversation wird vermerkt, dass keine Antwort nötig ist
   *[other] Für { $n } Konversationen wird vermerkt, dass keine Antwort nötig ist
}
doing-waitAgain = { $n ->
    [one] { $n } Konversation wird als wartend markiert
   *[other] { $n } Konversationen werden als wartend markiert
}
doing-unread = { $n ->
    [one] { $n } Konversation wird als ungelesen markiert
   *[other] { $n } Konversationen werden als ungelesen markiert
}
doing-follow = { $n ->
    [one] Folgen: { $n } Konversation
   *[other] Folgen: { $n } Konversationen
}
doing-unfollow = { $n ->
    [one] Nicht mehr folgen: { $n } Konversation
   *[other] Nicht mehr folgen: { $n } Konversationen
}

what-close = { $n ->
    [one] { $n } Konversation schließen
   *[other] { $n } Konversationen schließen
}
what-reopen = { $n ->
    [one] { $n } Konversation wieder öffnen
   *[other] { $n } Konversationen wieder öffnen
}
what-pending = { $n ->
    [one] { $n } Konversation auf „Ausstehend“ setzen
   *[other] { $n } Konversationen auf „Ausstehend“ setzen
}
what-assign = { $n ->
    [one] { $n } Konversation zuweisen
   *[other] { $n } Konversationen zuweisen
}
what-unassign = { $n ->
    [one] Zuweisung von { $n } Konversation aufheben
   *[other] Zuweisung von { $n } Konversationen aufheben
}
what-tag = { $n ->
    [one] Schlagwörter von { $n } Konversation ändern
   *[other] Schlagwörter von { $n } Konversationen ändern
}
what-snooze = { $n ->
    [one] { $n } Konversation zurückstellen
   *[other] { $n } Konversationen zurückstellen
}
what-wake = { $n ->
    [one] Zurückstellung von { $n } Konversation beenden
   *[other] Zurückstellung von { $n } Konversationen beenden
}
what-archive = { $n ->
    [one] { $n } Konversation archivieren
   *[other] { $n } Konversationen archivieren
}
what-unarchive = { $n ->
    [one] { $n } Konversation aus dem Archiv holen
   *[other] { $n } Konversationen aus dem Archiv holen
}
what-noAnswerNeeded = { $n ->
    [one] Keine Antwort nötig: { $n } Konversation
   *[other] Keine Antwort nötig: { $n } Konversationen
}
what-waitAgain = { $n ->
    [one] { $n } Konversation als wartend markieren
   *[other] { $n } Konversationen als wartend markieren
}
what-unread = { $n ->
    [one] { $n } Konversation als ungelesen markieren
   *[other] { $n } Konversationen als ungelesen markieren
}
what-follow = { $n ->
    [one] { $n } Konversation folgen
   *[other] { $n } Konversationen folgen
}
what-unfollow = { $n ->
    [one] { $n } Konversation nicht mehr folgen
   *[other] { $n } Konversationen nicht mehr folgen
}

done-close = geschlossen
done-reopen = wieder geöffnet
done-pending = auf „Ausstehend“ gesetzt
done-assign = zugewiesen
done-unassign = nicht mehr zugewiesen
done-tag = mit geänderten Schlagwörtern
done-snooze = zurückgestellt
done-wake = nicht mehr zurückgestellt
done-archive = archiviert
done-unarchive = aus dem Archiv geholt
done-noAnswerNeeded = als „Keine Antwort nötig“ markiert
done-waitAgain = als wartend markiert
done-unread = als ungelesen markiert
done-follow = gefolgt
done-unfollow = nicht mehr gefolgt

undoing = „{ $what }“ wird rückgängig gemacht
progress = { $n } erledigt
count = { $n }
skipped = { $n } übersprungen
undone = { $n } wiederhergestellt
kept = { $n } nicht wiederhergestellt
left = { $n } unverändert gelassen
cancelled = Abgebrochen
why = Warum
undo = Rückgängig
cancel = Abbrechen
dismiss = Ausblenden
bar = Sammeländerung
example = Beispiel zeigen

stopped-permission_lost = Angehalten: Ihnen fehlt inzwischen die Berechtigung dazu
stopped-assignee_gone = Angehalten: Die zuständige Person oder das Team gibt es nicht mehr
stopped-snooze_ended = Angehalten: Das Ende der Zurückstellung ist vorbei

stop = Angehalten

reasons-unchanged = Nichts zu ändern
reasons-conversation_closed = Geschlossen
reasons-conversation_deleted = Inzwischen gelöscht
reasons-tag_limit_reached = Hätte mehr als 20 Schlagwörter
reasons-conversation_merged = In eine andere Konversation zusammengeführt
reasons-newer_message = Inzwischen hat der Kunde geschrieben
reasons-no_contact_message = Der Kunde hat nichts geschrieben
reasons-changed_since = Seitdem geändert
reasons-assignee_gone = Die frühere zuständige Person oder das Team gibt es nicht mehr
reasons-internal_error = Im Dienst ist etwas schiefgelaufen
