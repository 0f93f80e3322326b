// @ts-check
/** Texts of sign-in: its ways, second factors, one-time links, and the proof before an important change. */
import { many, t as first } from "../core/texts.js";

export const t = {
  tryAgain: first.tryAgain, cancel: first.cancel, offline: first.signIn.offline, signOut: first.side.signOut,
  title: "Sign in to Deskwire", again: "Sign in again",
  againText: "Your session has ended. Your drafts are kept, and unsent messages go out once you sign in again.",
  email: "Email", password: "Password", newPassword: "New password", signIn: "Sign in", or: "or",
  newPasswordText: "Your one-time password was accepted. Choose your own password.",
  wrong: "Wrong email or password.", disabled: "Password sign-in is turned off here.",
  noWay: "No way to sign in is set up here. Ask an administrator of this service.",
  withProvider: (/** @type {string} */ name) => `Continue with ${name}`, withPasskey: "Use a passkey",
  setUp: "This service has no owner yet. Open the one-time link from its log to create the first account.",
  forgot: "Forgot your password?", forgotTitle: "Reset your password", sendLink: "Send the link", backToSignIn: "Back to sign-in",
  forgotMail: "Enter your email address. If an account has it, a mail with a one-time link is sent to you.",
  forgotSent: (/** @type {string} */ email) => `If ${email} has an account here, a mail with a one-time link is on its way. Look in the spam folder too.`,
  forgotAdministrator: "This service sends no mail. Ask an administrator of your organisation for a one-time link; it lets you choose a new password.",

  /** @type {Record<string, string>} The reasons why a provider did not sign the user in. */
  failures: {
    no_account: "No account here belongs to your company account. Ask an administrator of your organisation to invite you.",
    account_elsewhere: "Your account here also belongs to another organisation, so this company account can't open it. Sign in with your password or a passkey.",
    no_role: "Your company account has no role here. Ask the people who manage your company accounts to give you access to Deskwire.",
    provider_refused: "Your company's sign-in page refused the request, or it was cancelled.",
    provider_unreachable: "Your company's sign-in page is not responding. Try again in a moment.",
    sign_in_expired: "The sign-in took too long, or it was started in another browser. Try again.",
    started_elsewhere: "Another website started the sign-in, so it was stopped. Choose how to sign in here.",
    address_not_verified: "Your company account has no verified email address, so it can't be matched with an account here.",
    other_account: "You signed in with another company account than this session belongs to. Try again with your own.",
    other: "The sign-in with your company account failed. Try again.",
  },

  factorTitle: "Confirm that it's you", factorText: "Your password was accepted. Your account has a second factor too.",
  code: "Code from your authenticator app", recoveryCode: "Recovery code", confirm: "Confirm",
  useCode: "Use a code from your app", useRecoveryCode: "Use a recovery code", usePassword: "Use your password", usePasskey: "Use a passkey",
  startAgain: "Start again", challengeEnded: "The second step took too long, or had too many wrong codes. Sign in again.",
  invalidCode: "This code is wrong or was used before. Wait for the next one in your app.", invalidRecoveryCode: "This recovery code is wrong or was used before.", wrongPassword: "Wrong password.",

  proofTitle: "Confirm that it's you", proofText: "This change needs a recent proof that it's you. It lasts for 15 minutes.",
  proofNone: "Sign in again to make this change. Your drafts are kept.",
  otherUser: "Someone else is signed in now, so the change was not made.",

  passkeys: {
    none: "This browser can't use passkeys.", cancelled: "No passkey was used: the request was cancelled, or took too long.",
    known: "This device already has a passkey for your account.", address: "Passkeys don't work at this address of the desk. Ask an administrator.",
  },

  link: {
    titles: { invitation: "Join your team", password: "Choose a new password", setUp: "Set up Deskwire" },
    /** @param {string|null} name */ invitation: (name) => `You are invited to ${name ?? "an organisation"}. Choose a password for your account.`,
    /** @param {string|null} name */ invitationKnown: (name) => `You are invited to ${name ?? "an organisation"}. Enter the password of your account to join.`,
    password: "Choose a new password. All your sessions end, and this browser is signed in.",
    setUp: "Create the first account. It owns this service's organisation, and invites the others.",
    checking: "Checking the link", name: "Your name", passwordHint: "At least 12 characters.", choose: "Password", yourPassword: "Your password", organisation: "Organisation", organisationHint: "The name of your company or team. Leave empty to take it from your email address.", again: "Confirm password", notTheSame: "The passwords do not match.",
    buttons: { invitation: "Join", password: "Save and sign in", setUp: "Create the account" },
    ended: "This link doesn't work", endedText: "It was used, has expired, or was replaced by a newer one. Ask for a new link.",
    none: "The link is incomplete", noneText: "Open the whole link from the message again. For safety, this page keeps it nowhere, so it is lost after a reload.",
    toSignIn: "Go to sign-in",
    /** @param {string} email */ signedIn: (email) => `You are signed in as ${email}. This link signs that account out in this browser.`,
  },

  project: {
    title: "You don't have access to this project",
    /** @param {string} email */ text: (email) => `${email} is not a member of the project in this address, or it was deleted. An administrator of its organisation can add you. Nothing was changed here.`,
    none: "You are not a member of any other project.",
    /** @param {string} name */ to: (name) => `Go to ${name}`,
    noProject: "You are not a member of any project", noProjectText: "Ask an administrator of your organisation to add you to one.",
  },

  enrolment: {
    title: "Set up a second factor",
    /** @param {string} name */ text: (name) => `${name} requires a second factor for all members. Set one up to continue: an authenticator app on your phone, or a passkey.`,
    others: "Your other projects",
  },

  factors: {
    title: "Second factor", none: "Only your password protects your account. A second factor keeps it safe if someone learns your password.",
    noneYet: "No second factor yet",
    app: "Authenticator app", appOn: (/** @type {string} */ at) => `Set up ${at}`, appOff: "Not set up", addApp: "Set up an app", removeApp: "Remove the app",
    scan: "Scan this code with your authenticator app, then enter the code that it shows.", qr: "QR code for your authenticator app", secret: "Secret, to enter by hand",
    passkeys: "Passkeys", noPasskeys: "No passkeys yet", addPasskey: "Add a passkey", passkeyText: "A passkey is your fingerprint, face or PIN on a device, or a security key. It signs you in without a password.",
    name: "Name", nameHint: "To recognize it in the list.", created: "Added", lastUsed: "Last used", remove: "Remove", removePasskey: "Remove this passkey",
    actions: "Actions", never: "never", removed: "Removed.", added: "Second factor added.",
    losesPasskey: (/** @type {string} */ name) => `The passkey ${name} no longer signs you in`, losesApp: "Codes of your authenticator app are no longer accepted",
    losesLast: "Without another factor, your account has only its password, and the recovery codes end",
    recovery: "Recovery codes", left: (/** @type {number} */ n) => (n ? `${many(n, "code", "codes")} left` : "None left"), newCodes: "New recovery codes", losesCodes: "All earlier recovery codes stop working",
    codesTitle: "Your recovery codes", codesText: "Each code replaces your second factor once, for example after the loss of your phone. Keep them in a safe place.",
    download: "Download", file: "deskwire-recovery-codes.txt", saved: "I saved the codes",
    required: "An organisation of yours requires a second factor, so you can't remove the last one.",
  },
};
