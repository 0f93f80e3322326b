any = Any
search = Search
filters = Filters
period = Period
since = Since
at = At
changed = Changed
created = Created
actions = Actions
yes = Yes
no = No
csv = As CSV
nothingFound = No results

periods-7 = 7 days
periods-30 = 30 days
periods-90 = 90 days
periods-365 = A year

downloadFailed = Couldn't download the file: { $why }

fieldNames-name = Name
fieldNames-trigger = Trigger
fieldNames-status = Status

pages-surveys = Surveys
pages-reports = Reports
pages-workflows = Workflows
pages-translations = Translations
pages-memory = Memory

editor-checking = Checking…
editor-sound = No problems.
editor-list = Problems
editor-back = Discard changes
editor-problems = { $n ->
    [one] { $n } problem
   *[other] { $n } problems
}
editor-line = Line { NUMBER($n) }
editor-notJson = Invalid JSON: { $why }

surveys-add = New survey
surveys-addText = It starts with a score and a question for the reason. You can edit its definition next.
surveys-create = Create and edit
surveys-name = Name
surveys-status = Status
surveys-version = Version
surveys-responses = Responses
surveys-language = Language
surveys-contact = Contact
surveys-firstQuestion = How likely are you to recommend us?
surveys-secondQuestion = What is the reason for your score?
surveys-thanks = Thank you!
surveys-statuses-OPEN = Open
surveys-statuses-CLOSED = Closed
surveys-none = No surveys yet
surveys-noneText = A survey asks customers for a rating and its reasons.
surveys-more = Manage
surveys-rename = Rename
surveys-close = Stop collecting responses
surveys-reopen = Resume collecting responses
surveys-remove = Delete the survey
surveys-nowIs = { $to ->
    [OPEN] The survey collects responses.
   *[other] The survey no longer collects responses.
}
surveys-removed = { $name } deleted.
surveys-loses-1 = { $n ->
    [one] { $n } response
   *[other] { $n } responses
}
surveys-loses-2 = { $versions ->
    [one] { $versions } version of its definition
   *[other] { $versions } versions of its definition
}
surveys-loses-3 = Its insights: themes, drivers, segments and alerts
surveys-contactsStay = The contacts who answered, and their conversations.
surveys-parts = Parts of the survey
surveys-partNames-figures = Figures
surveys-partNames-responses = Responses
surveys-partNames-definition = Definition
surveys-partNames-versions = Versions
surveys-definition = Definition
surveys-published = Published.
surveys-isPublished = published
surveys-nothingChanged = Nothing to publish.
surveys-definitionText = Version { NUMBER($n) } is published. Your changes are checked at once, and go live when you publish them. Responses keep the version they answered.
surveys-definitionRead = Version { NUMBER($n) } is published. Your role is read-only.
surveys-publish = Publish version { NUMBER($n) }
surveys-publishAgain = Publish this definition again
surveys-versionNumber = Version { NUMBER($n) }
surveys-answers = Answers
surveys-answer = Answer
surveys-anonymous = anonymous
surveys-noAnswers = No answers
surveys-response = A response
surveys-csv = As CSV
surveys-removeResponse = Delete this response
surveys-responseRemoved = Response deleted.
surveys-losesResponse-1 = All answers of this response
surveys-losesResponse-2 = The quotes from it in the insights
surveys-noResponses = No responses yet
surveys-noResponsesText = Your backend stores responses through the API, or imports them.
surveys-allVersions = All comparable versions
surveys-questions = Answers to each question
surveys-times = Responses
surveys-share = Share
surveys-scoreNames-nps = NPS
surveys-scoreNames-csat = CSAT, %
surveys-scoreNames-ces = CES
surveys-scoreNames-rating = Rating
surveys-scoreNames-number = Mean
surveys-types-nps = NPS
surveys-types-csat = CSAT
surveys-types-ces = CES
surveys-types-rating = Rating
surveys-types-single_choice = One choice
surveys-types-multiple_choice = Several choices
surveys-types-text = Text
surveys-types-number = Number
surveys-types-date = Date
surveys-types-boolean = Yes or no
surveys-ofAnswers = { $n ->
    [one] { $n } answer
   *[other] { $n } answers
}
surveys-scoreOver = { $name } over time
surveys-responsesOver = Responses over time
# $from, $to
surveys-scoreSummary = The score over time, from { $from } to { $to }.
surveys-responsesSummary = The number of responses over time, { $n } in total.
surveys-insights = Insights
surveys-noInsights = No insights yet. Refresh computes them from the newest responses.
surveys-refresh = Refresh
surveys-refreshing = Computing
surveys-computed = Computed
surveys-refreshFailed = The last refresh failed: { $why }
surveys-themes = Themes
surveys-theme = Theme
surveys-mentions = Mentions
surveys-sentiment = Sentiment
surveys-sentiments-positive = positive
surveys-sentiments-neutral = neutral
surveys-sentiments-negative = negative
surveys-drivers = Drivers
surveys-impact = Impact
surveys-segments = Segments
surveys-size = Size
surveys-score = Score
surveys-severities-info = Note
surveys-severities-warning = Warning
surveys-severities-critical = Critical
surveys-quotes = { $n ->
    [one] { $n } quote
   *[other] { $n } quotes
}

reports-by = By
reports-groups-day = Day
reports-groups-agent = Agent
reports-groups-team = Team
reports-groups-channel = Channel
reports-groups-tag = Tag
reports-without-agent = Unassigned
reports-without-team = Unassigned
reports-without-channel = No channel
reports-without-tag = No tag
reports-channel = Channel
reports-allChannels = All channels
reports-tags = Tags
reports-tagsHint = All tags
reports-severalTags = A conversation with several tags counts in each of them, so the rows can add up to more than the total.
reports-deleted = Deleted
reports-nothing = No data for this period
reports-names-first--response = First response
reports-names-time--to--close = Time to close
reports-names-csat = CSAT
reports-names-volume = Volume
reports-names-backlog = Backlog
reports-texts-first--response = How long contacts waited for an agent's first reply. Bots do not count.
reports-texts-time--to--close = How long conversations were open, from creation or the last reopening until they were closed.
reports-texts-csat = The ratings of conversations. CSAT is the percentage of 7 to 10.
reports-texts-volume = Conversations created, closed and reopened, and messages by author.
reports-texts-backlog = Conversations that are open now; by day, those open at the end of each day.
reports-figures-median = Median
reports-figures-mean = Mean
reports-figures-p90 = 90th percentile
reports-figures-count = Count
reports-figures-csat = CSAT
reports-figures-average = Average rating
reports-figures-conversationsCreated = Created
reports-figures-conversationsClosed = Closed
reports-figures-conversationsReopened = Reopened
reports-figures-messages = Messages
reports-figures-contactMessages = from customers
reports-figures-agentMessages = from agents
reports-figures-botMessages = from bots
reports-figures-open = Open
reports-figures-waiting = Waiting
reports-omitted = { $n ->
    [one] { $n } group more; a report has at most 1,000 rows.
   *[other] { $n } groups more; a report has at most 1,000 rows.
}
# $title, $figure, $value
reports-summary = { $title } over time. { $figure } of the whole period: { $value }.
reports-units-seconds = seconds
reports-units-minutes = minutes
reports-units-hours = hours
reports-units-days = days
reports-lasted-seconds = { $n } s
reports-lasted-minutes = { $n } min
reports-lasted-hours = { $n } h
reports-lasted-days = { $n } d
reports-counted-first--response = { $n ->
    [0] No first replies
   *[other] { $n ->
        [one] { $n } first reply
        *[other] { $n } first replies
    }
}
reports-counted-time--to--close = { $n ->
    [0] No closings
   *[other] { $n ->
        [one] { $n } closing
        *[other] { $n } closings
    }
}
reports-counted-csat = { $n ->
    [0] No ratings
   *[other] { $n ->
        [one] { $n } rating
        *[other] { $n } ratings
    }
}
reports-few = { $counted }: too few to compare
reports-fewOfRow = too few to compare
reports-compare = Compare
reports-compareWith-before = With the period before
reports-compareWith-off = Off
reports-before = { $figure } before
reports-change = Change
reports-nothingBefore = Nothing to compare in the period before
reports-unchanged = Unchanged from { $was }
reports-onlyBefore = , with only { $counted } then
# $by, $was, $share
reports-up = { $share ->
    [none] Up { $by } from { $was }
   *[other] Up { $by } from { $was } ({ $share })
}
# $by, $was, $share
reports-down = { $share ->
    [none] Down { $by } from { $was }
   *[other] Down { $by } from { $was } ({ $share })
}
reports-points = { $n } points
reports-beforeDay = Before: { $day }
reports-beforeFailed = Couldn't load the period before: { $why }
# $from, $to
reports-compared = Compared with { $from } to { $to }, the same weekdays, up to the same time of day.

workflows-add = New workflow
workflows-addText = It starts with a message and hands over to an agent. You can edit its flows next.
workflows-create = Create and edit
workflows-name = Name
workflows-trigger = Starts
workflows-version = Version
workflows-none = No workflows yet
workflows-noneText = A workflow answers customers step by step, and hands over to an agent.
workflows-triggers-conversation__created = With each new conversation
workflows-triggers-manual = Manually
workflows-firstText = Hello! An agent will be with you soon.
workflows-more = Manage
workflows-edit = Name and start
workflows-remove = Delete the workflow
workflows-loses-1 = The workflow with all its versions
workflows-loses-2 = The history of its finished runs
workflows-stays-1 = Runs in progress: they continue to their end.
workflows-removed = { $name } deleted.
workflows-parts = Parts of the workflow
workflows-partNames-picture = Diagram
workflows-partNames-definition = Definition
workflows-partNames-try = Try it
workflows-partNames-runs = Runs
workflows-partNames-versions = Versions
workflows-definition = Flows
workflows-published = Published.
workflows-isPublished = published
workflows-nothingChanged = Nothing to publish.
workflows-publishAgain = Publish these flows again
workflows-versionsText = The newest 100 versions are kept, and older ones while they have runs.
workflows-definitionText = Version { NUMBER($n) } is published. Your changes are checked at once, and go live when you publish them. Runs in progress keep their version.
workflows-definitionRead = Version { NUMBER($n) } is published. Your role is read-only.
workflows-publish = Publish version { NUMBER($n) }
workflows-versionNumber = Version { NUMBER($n) }
workflows-flowsOf = Flows of version { NUMBER($n) }
workflows-waitNow = Waiting now
workflows-stoppedRuns = Stopped
workflows-showThem = Show them
workflows-tryThese = Try these flows
workflows-times = { $n ->
    [one] { $n } run
   *[other] { $n } runs
}
workflows-oldVersions = { $n ->
    [one] { $n } run of older versions are waiting, too.
   *[other] { $n } runs of older versions are waiting, too.
}
workflows-outcomes-completed = Completed
workflows-outcomes-handed_off = Handed off
workflows-stopped = Stopped
workflows-whyStopped-step_limit = Stopped after 1,000 actions: probably a loop.
workflows-whyStopped-attributes_full = The conversation would have had too many attributes.
workflows-whyStopped-assignee_gone = The assigned team or user no longer exists.
workflows-flow = Flow { $id }
workflows-begins = starts here
workflows-nextAction = next action
workflows-theEnd = end
workflows-otherwise = otherwise
workflows-anyText = any text
workflows-branchOn = by
workflows-waitsHere = waits here
workflows-since = since
workflows-wait = { NUMBER($n) } waiting
workflows-lasts-seconds = { $n } s
workflows-lasts-minutes = { $n } min
workflows-lasts-hours = { $n } h
workflows-to-user = To the user
workflows-to-team = To the team
workflows-actions-message = Message
workflows-actions-buttons = Buttons
workflows-actions-form = Form
workflows-actions-wait = Wait
workflows-actions-assign = Assign
workflows-actions-set_attributes = Set attributes
workflows-actions-branch = Branch
workflows-actions-close = Close the conversation
workflows-actions-hand_off = Hand off to an agent
workflows-state = State
workflows-states-waiting = Waiting
workflows-states-ended = Ended
workflows-states-stopped = Stopped
workflows-conversation = Conversation
workflows-waitsAt = Waits at
workflows-endedAt = Ended at
workflows-waitsSince = Since
workflows-ended = Ended
workflows-goesOn = Continues
workflows-withAnswer = with an answer
workflows-how = Outcome
workflows-unknownSince = unknown
workflows-noRuns-waiting = Not waiting anywhere
workflows-noRuns-ended = No finished runs yet
workflows-noRuns-stopped = No stopped runs
# $flow, $action (number)
workflows-stepOf = { $flow }, action { $action }
workflows-tryIt = Try it
workflows-tryText = Nothing is stored or sent. Timed waits end at once.
workflows-attributes = Attributes of the conversation
workflows-attributesHint = One per line, such as plan = pro. Values can be JSON.
workflows-attributesNow = Attributes
workflows-course = What happens
workflows-options = Options
workflows-answer = Answer
workflows-orText = Or type
workflows-fromStart = Start over
workflows-stepBack = Undo last answer
workflows-nothingFilledIn = (nothing filled in)
workflows-did-message = The bot:{ " " }
workflows-did-answer = The contact:{ " " }
workflows-did-assigned = Assigned to
workflows-did-attributes = Attributes:
workflows-did-closed = The conversation is closed.
workflows-did-waited = { NUMBER($n) } s later.

translations-add = New entry
translations-create = Create
translations-type = Type
translations-key = ID
translations-keyHint = A key of your choice; 24 hexadecimal digits for the other types.
translations-fieldName = Name of the field
translations-entry = Entry
translations-there = Languages
translations-show = Show
translations-missingOnly = Missing
translations-all = All
translations-language = Language
translations-into = Into
translations-progress = Missing per language
translations-none = No entries yet
translations-types-statictranslation = Interface text
translations-types-article = Article
translations-types-collection = Collection
translations-types-emailtemplate = Email template
translations-more = Manage
translations-addField = Add a field
translations-remove = Delete the entry
translations-thenNext = Then open the next missing entry
translations-noSource = (missing)
translations-nowhere = No text in this language or the primary one.
translations-fields = Fields
translations-textIn = Text, { $language }
# $name, $language
translations-fieldIn = { $name }, { $language }
# $language, $n (number)
translations-lacks = { $n ->
    [0] { $language }: complete
   *[other] { $language }: { $n } missing
}
translations-complete = Nothing is missing in { $language }
translations-lacking = missing in { $language }
translations-saved = Saved in { $language }.
translations-removeLanguage = Delete { $language }
translations-losesLanguage-1 = The texts of this entry in { $language }
translations-losesEntry-1 = The entry in all its languages: { $languages }

memory-choose = Select a contact to see its memory.
memory-contact = Contact
memory-contacts = Contacts
memory-email = Email
memory-userId = External ID
memory-none = No contacts yet
memory-name = Name
memory-nameHint = Such as “shoe size”. An entry with the same name is replaced.
memory-content = Content
memory-description = Source
memory-add = Add
memory-change = Edit the entry
memory-saved = Saved.
memory-forget = Delete
memory-clear = Delete all
memory-forgotten = Deleted.
memory-nothing = No memory entries yet
memory-nothingText = Bots and agents save facts here for the next conversation.
memory-off = Memory is turned off
memory-offText = It is turned off in the project's settings. Existing entries are kept but not shown.
memory-losesOne = The entry “{ $name }”
memory-losesAll = All memory entries of { $name }
memory-stays = The contact and the conversations.
