// @ts-check
/**
 * Types shared by the modules of the desk. The module is never loaded, only read by the type checker:
 * `/** @import { Row } from "./types.js" *\/`.
 *
 * @typedef {"OPEN"|"PENDING"|"CLOSED"} Status
 *
 * @typedef {import("api").Author} Author
 *
 * @typedef {import("api").Attachment} Attachment
 *
 * A message as agents see it. A stored one has an id of the server, `msg_…`.
 * @typedef {import("api").AgentMessage & {sequence?: number|null, seenAt?: string|null, clientKey?: string|null}} AgentMessage
 *
 * @typedef {import("api").Assignee} Assignee
 *
 * @typedef {import("api").LastMessage} LastMessage
 *
 * A user or team that a note mentions, with the name in the text.
 * @typedef {import("api").Mention} Mention
 *
 * A conversation in a list: the server's `AgentConversation`. Rows are immutable.
 * @typedef {import("api").AgentConversation & {channelId?: string, contactReachedIndex?: number|null, contactReachedAt?: string|null}} Row
 *
 * The filter and order of a list. `assignee` is `me`, `none`, or the id of a user or team.
 * @typedef {object} Filter
 * @property {Status[]} [status]
 * @property {string} [assignee]
 * @property {string} [team]
 * @property {boolean} [unread]
 * @property {boolean} [mentioned]  whether a note mentions the user; archived conversations are included unless `archived` is given
 * @property {boolean} [following]
 * @property {string} [tag]
 * @property {boolean} [snoozed]
 * @property {boolean} [archived]  default: false
 * @property {boolean} [visible]
 * @property {boolean} [waiting]
 * @property {"activity"|"waiting"|"created"} [sort]  default: activity
 * @property {"asc"|"desc"} [order]  default: desc
 * @property {string} [where]  further conditions as a query, which only the service decides
 *
 * A saved view of the inbox, with its count. `foreign`: of a team that the user is not in; it is in no list.
 * @typedef {import("api").SavedView & {foreign?: boolean}} SavedView
 *
 * A list as it is shown. While its order is held (`hold`), `fresh` counts the new and moved rows.
 * @typedef {object} ListView
 * @property {string} key
 * @property {Filter} filter
 * @property {string[]} ids
 * @property {number} fresh
 * @property {boolean} held
 * @property {"loading"|"ready"|"failed"} state
 * @property {boolean} more  true if there are further pages
 * @property {boolean} loadingMore
 * @property {Error|null} error
 *
 * The loaded part of a thread: stored messages, oldest first. `outgoing(id)` has those on their way.
 * @typedef {object} Thread
 * @property {string} id
 * @property {AgentMessage[]} messages
 * @property {boolean} older  true if there are older messages
 * @property {"loading"|"ready"|"failed"} state
 * @property {boolean} loadingOlder
 * @property {Error|null} error
 *
 * The reason why a conversation no longer exists.
 * @typedef {object} Gone
 * @property {string} reason  as in the event: `manual`, `retention` or `gdpr`; `not_found` if it was never loaded
 * @property {string} at
 *
 * @typedef {object} Delivery
 * @property {number} sequence
 * @property {string} eventId
 * @property {string} endpointId
 * @property {string} endpoint
 * @property {string} status
 * @property {string|null} reason
 * @property {number} attempts
 * @property {number|null} lastStatus
 * @property {string|null} deliveredAt
 * @property {number|null} afterMs
 * @property {string|null} nextAttemptAt
 *
 * @typedef {object} Counters
 * @property {number} mine
 * @property {number} mineWaiting
 * @property {number} unassigned
 * @property {number} waiting
 * @property {number} open
 * @property {number} pending
 * @property {number} snoozed
 * @property {number} unread
 * @property {number} mentions  the unseen ones
 * @property {number} following
 * @property {Record<string, number>} teams
 * @property {number} bound  a counter of this value means "this many or more"
 * @property {string} asOf
 *
 * A colleague with the desk open.
 * @typedef {object} Presence
 * @property {string} id
 * @property {string} name
 * @property {boolean} online
 * @property {string[]} conversationIds
 * @property {string|null} composing  the conversation in which the agent types
 *
 * The page that a customer's browser shows, as the browser reports it.
 * @typedef {{url: string|null, title: string|null}} BrowserPage
 *
 * A customer's session in a browser or an app. `context` is what the page reports: nothing of it is verified.
 * @typedef {object} ContactSession
 * @property {string} id
 * @property {string} channelId
 * @property {boolean} verified  true if the customer's backend has signed the identity
 * @property {string[]} [signed]  the fields that the backend has signed, besides the external id
 * @property {any} context  url, title, referrer, language, timezone, custom; all optional
 * @property {string|null} [client]  the `User-Agent`
 * @property {string} createdAt
 * @property {string|null} [lastUsedAt]
 * @property {string|null} [expiresAt]
 * @property {string|null} [endedAt]
 *
 * A typing indicator of a colleague or the contact.
 * @typedef {object} Typing
 * @property {"agent"|"contact"} type
 * @property {string|null} id
 * @property {string|null} name
 * @property {boolean} internal
 * @property {number} until  milliseconds, by this browser's clock
 *
 * @typedef {import("api").User} User
 *
 * @typedef {import("api").SessionProject} Project
 *
 * An event of the stream: an envelope, or an ephemeral event with `type` and `data` only.
 * @typedef {object} Envelope
 * @property {string} id
 * @property {string} type
 * @property {number|null} sequence
 * @property {string} createdAt
 * @property {string} project_id
 * @property {any} data
 *
 * The notification settings of the user.
 * @typedef {import("api").NotificationSettings} NotificationSettings
 * @typedef {import("api").PushState} PushState
 * @typedef {import("api").Push} Push
 *
 * The state of the connection. `since` and the other times are milliseconds by this browser's clock.
 * `live`: the stream is open. `reconnecting`: it broke, and resumes without a loss. `offline`: the browser reports no
 * network. `gap`: events were missed, and everything is reloaded. `ended`: the server closed it for good.
 * @typedef {object} Connection
 * @property {"connecting"|"live"|"reconnecting"|"offline"|"gap"|"ended"} state
 * @property {number} since
 * @property {string|null} cursor  the newest event's id
 * @property {number|null} lastEventAt
 * @property {number} caughtUp  events received after the last resumption
 * @property {number|null} retryAt
 * @property {string|null} streamId
 * @property {number|null} silentSince  the time of the last byte, while heartbeats of an open stream are missing
 * @property {string|null} reason  of `ended`: as in `bye`, or a problem's code
 *
 * Changes made with a message, in the same commit.
 * @typedef {object} Then
 * @property {Status} [status]
 * @property {boolean} [close]
 * @property {{type: "user"|"team", id: string}|null} [assignee]
 * @property {string|null} [snoozedUntil]
 *
 * A file of an outgoing message. `progress` is 0 to 1; `uploadId` is set once the server has the file.
 * @typedef {object} OutgoingFile
 * @property {string} key
 * @property {string} name
 * @property {string} type
 * @property {number} size
 * @property {number} progress
 * @property {string|null} uploadId
 *
 * An outbox entry: a message or change on its way to the server. It is stored in this browser before it is sent.
 * `held`: within its undo window, until `notBefore`. `kept`: waits for its turn, the connection or `notBefore`.
 * `sending`. `stored`: on the server's disk, `tookMs` after it was sent. `refused`: not sent again, for the reason in
 * `problem`. `conflict`: the conversation has new messages, in `since`.
 * @typedef {object} Outgoing
 * @property {string} key  also its Idempotency-Key
 * @property {"message"|"action"} kind
 * @property {"held"|"kept"|"sending"|"stored"|"refused"|"conflict"} state
 * @property {string} userId
 * @property {string} projectId
 * @property {string|null} conversationId
 * @property {number} order
 * @property {number} createdAt
 * @property {number} notBefore
 * @property {number} attempts
 * @property {string} method
 * @property {string} path
 * @property {any} body
 * @property {Partial<Row>|null} expect  the fields of the row after an action
 * @property {string} label  the name of an action
 * @property {string|null} text
 * @property {boolean} internal
 * @property {OutgoingFile[]} files
 * @property {Mention[]} [mentions]  of a note
 * @property {number|null} sentAt
 * @property {number|null} tookMs
 * @property {number} [storedAt]
 * @property {string} [storedAsOf]  the newest known event of the conversation at that time
 * @property {any} answer  the server's response, once stored
 * @property {{status: number, code: string, detail: string, requestId: string|null, errors: any[]}|null} problem
 * @property {string|null} waitsFor  the reason for waiting: `offline`, `rate_limited`, `server_failed`, `signed_out`, `failed`, null
 * @property {AgentMessage[]} since
 * @property {Guard|null} [guard]  the fields the conversation must have when the action is sent
 *
 * The fields of a conversation that an undo reverts. It is refused if someone else has changed them.
 * @typedef {Partial<Pick<Row, "status"|"closedAt"|"assignee"|"snoozedUntil"|"noAnswerNeededSince"|"title"|"archived"|"tags">>} Guard
 *
 * One of the two drafts of a conversation.
 * @typedef {"reply"|"note"} Mode
 *
 * A draft. `base` is the server's last known version, with `files` as upload ids; `sent` has texts sent to the server without a response yet.
 * @typedef {object} Draft
 * @property {string} text
 * @property {OutgoingFile[]} files
 * @property {Mention[]} mentions  that were picked, and whose names are in the text
 * @property {number|null} baseSequence  the newest event that was shown at the last change
 * @property {number} at
 * @property {{version: number, text: string, files: string[], mentions: Mention[]}} base
 * @property {string[]} sent
 *
 * A message that the server holds until `sendAt`, or could not send at that time. `endsAt` is `sendAt` by this browser's clock.
 * @typedef {object} HeldMessage
 * @property {string} id  also the id of the later message
 * @property {string} conversationId
 * @property {string} text
 * @property {"markdown"} [format]
 * @property {Attachment[]} attachments
 * @property {boolean} internal
 * @property {Mention[]} mentions
 * @property {"held"|"refused"} status
 * @property {boolean} scheduled  true if the author chose the time
 * @property {boolean} unlessReplied  true if a later message of the customer refuses it
 * @property {string} sendAt
 * @property {string} createdAt
 * @property {any} then
 * @property {{code: string, detail: string}|null} problem
 * @property {number} endsAt
 *
 * A page of the desk outside the inbox.
 * @typedef {object} PageEntry
 * @property {string} path  below `/desk/`, without an id
 * @property {"work"|"insights"|"console"|"settings"} group  its group in the navigation
 * @property {string} title
 * @property {string} icon
 * @property {string|null} permission  required to open it; null: every user may
 * @property {string} [listed]  required to see it in the navigation, if that is more; the page also opens by its address
 * @property {() => Promise<any>} load
 */
export {};
