// @ts-check
/**
 * The shapes that the modules of the desk have in common; no code. It is never loaded, only read by the type checker:
 * `/** @import { Row } from "./types.js" *\/`.
 *
 * @typedef {"OPEN"|"PENDING"|"CLOSED"} Status
 *
 * @typedef {import("api").Author} Author
 *
 * @typedef {import("api").Attachment} Attachment
 *
 * A message as agents see it. What has been stored has an id of the server, `msg_…`.
 * @typedef {import("api").AgentMessage & {sequence?: number|null, seenAt?: string|null, clientKey?: string|null}} AgentMessage
 *
 * @typedef {import("api").Assignee} Assignee
 *
 * @typedef {import("api").LastMessage} LastMessage
 *
 * A conversation in a list: the server's `AgentConversation`. Never changed in place: a change makes a new row.
 * @typedef {import("api").AgentConversation} Row
 *
 * What a list shows. `assignee` is `me`, `none`, a user's or a team's id.
 * @typedef {object} Filter
 * @property {Status[]} [status]
 * @property {string} [assignee]
 * @property {string} [team]
 * @property {boolean} [unread]
 * @property {string} [tag]
 * @property {boolean} [snoozed]
 * @property {boolean} [visible]
 * @property {boolean} [waiting]
 * @property {"activity"|"waiting"|"created"} [sort]  default: activity
 * @property {"asc"|"desc"} [order]  default: desc
 *
 * An ordered list as it is shown. While the order is held (`hold`), `fresh` counts what waits to be put in its place.
 * @typedef {object} ListView
 * @property {string} key
 * @property {Filter} filter
 * @property {string[]} ids
 * @property {number} fresh
 * @property {boolean} held
 * @property {"loading"|"ready"|"failed"} state
 * @property {boolean} more  whether there are further pages
 * @property {boolean} loadingMore
 * @property {Error|null} error
 *
 * A thread as far as it is loaded: oldest first, stored messages alone. Those on their way are `outgoing(id)`.
 * @typedef {object} Thread
 * @property {string} id
 * @property {AgentMessage[]} messages
 * @property {boolean} older  whether there are older ones
 * @property {"loading"|"ready"|"failed"} state
 * @property {boolean} loadingOlder
 * @property {Error|null} error
 *
 * Why a conversation that was open is not there any more.
 * @typedef {object} Gone
 * @property {string} reason  as in the event: `manual`, `retention` or `gdpr`; `not_found` if it was never seen
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
 * @property {Record<string, number>} teams
 * @property {number} bound  a counter of this value means "so many or more"
 * @property {string} asOf
 *
 * A colleague with the desk open.
 * @typedef {object} Presence
 * @property {string} id
 * @property {string} name
 * @property {boolean} online
 * @property {string[]} conversationIds
 * @property {string|null} composing  the conversation that is written in
 *
 * Somebody who is typing: a colleague, or the contact.
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
 * An event of the stream, as it comes: the envelope, or a passing one (`type` and data, no id).
 * @typedef {object} Envelope
 * @property {string} id
 * @property {string} type
 * @property {number|null} sequence
 * @property {string} createdAt
 * @property {string} project_id
 * @property {any} data
 *
 * The state of the connection. `since` and the other times are milliseconds by this browser's clock.
 * `live`: the stream is open. `reconnecting`: it broke, nothing is lost. `offline`: the browser says that there is no
 * network. `gap`: it was away for too long, all is loaded anew. `ended`: the server said bye for good.
 * @typedef {object} Connection
 * @property {"connecting"|"live"|"reconnecting"|"offline"|"gap"|"ended"} state
 * @property {number} since
 * @property {string|null} cursor  the newest event's id
 * @property {number|null} lastEventAt
 * @property {number} caughtUp  events that came at the last resumption
 * @property {number|null} retryAt
 * @property {string|null} streamId
 * @property {number|null} silentSince  when the last byte came, if heartbeats are missing though the stream is open
 * @property {string|null} reason  of `ended`: as in `bye`, or a problem's code
 *
 * What is done with a message besides, in the same commit.
 * @typedef {object} Then
 * @property {Status} [status]
 * @property {boolean} [close]
 * @property {{type: "user"|"team", id: string}|null} [assignee]
 * @property {string|null} [snoozedUntil]
 *
 * A file of a message on its way. `progress` is 0 to 1; `uploadId` is there when the server has it.
 * @typedef {object} OutgoingFile
 * @property {string} key
 * @property {string} name
 * @property {string} type
 * @property {number} size
 * @property {number} progress
 * @property {string|null} uploadId
 *
 * Something that was done here and has to reach the server. It is kept on this computer before anything is sent.
 * `held`: within its undo window, until `notBefore`. `kept`: waits for its turn, the connection or `notBefore`.
 * `sending`. `stored`: on the server's disk, `tookMs` after it was sent. `refused`: never sent again, `problem` says
 * why. `conflict`: the conversation moved on, `since` has what came.
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
 * @property {Partial<Row>|null} expect  what the row looks like when it is done, for an action
 * @property {string} label  what was done, in words, for an action
 * @property {string|null} text
 * @property {boolean} internal
 * @property {OutgoingFile[]} files
 * @property {number|null} sentAt
 * @property {number|null} tookMs
 * @property {number} [storedAt]
 * @property {string} [storedAsOf]  the newest event that was known of the conversation then
 * @property {any} answer  the server's, when it is stored
 * @property {{status: number, code: string, detail: string, requestId: string|null, errors: any[]}|null} problem
 * @property {string|null} waitsFor  why it is kept: `offline`, `rate_limited`, `server_failed`, `signed_out`, `failed`, null
 * @property {AgentMessage[]} since
 * @property {Guard|null} [guard]  what the conversation has to be like, as an action is sent
 *
 * The fields of a conversation that an undo takes back; it is refused if somebody else has changed them.
 * @typedef {Partial<Pick<Row, "status"|"closedAt"|"assignee"|"snoozedUntil">>} Guard
 *
 * Which of the two texts of a conversation is written.
 * @typedef {"reply"|"note"} Mode
 *
 * What is being written. `base` is what the server had when it was last heard of, `files` as upload ids; `sent` are texts that it was sent and has not
 * answered.
 * @typedef {object} Draft
 * @property {string} text
 * @property {OutgoingFile[]} files
 * @property {number|null} baseSequence  of the newest event that was shown when it was changed
 * @property {number} at
 * @property {{version: number, text: string, files: string[]}} base
 * @property {string[]} sent
 *
 * A message that the server holds until `sendAt`, or could not send then. `endsAt` is `sendAt` by this browser's clock.
 * @typedef {object} HeldMessage
 * @property {string} id  that of the message later
 * @property {string} conversationId
 * @property {string} text
 * @property {Attachment[]} attachments
 * @property {boolean} internal
 * @property {"held"|"refused"} status
 * @property {string} sendAt
 * @property {string} createdAt
 * @property {any} then
 * @property {{code: string, detail: string}|null} problem
 * @property {number} endsAt
 *
 * A page of the desk, beside the inbox.
 * @typedef {object} PageEntry
 * @property {string} path  below `/desk/`, without an id
 * @property {"work"|"learn"|"console"|"settings"} group  where the navigation shows it
 * @property {string} title
 * @property {string} icon
 * @property {string|null} permission  what a role needs to open it; null: whoever is signed in
 * @property {() => Promise<any>} load
 */
export {};
