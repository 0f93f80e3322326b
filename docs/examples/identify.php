<?php
// Sign a customer's identity for Deskwire's widget. Needs PHP 8.0 or newer, and nothing else.
//
// CHANNEL_ID=chn_... CHANNEL_SECRET=chs_... php identify.php user-1 "Ada Lovelace"
//
// Call `identify` in a route of your site that knows who is signed in, and answer with its result. The secret stays in your backend.

declare(strict_types=1);

const LIFETIME_S = 3600; // at most 24 hours are accepted

function encoded(string $data): string
{
    return rtrim(strtr(base64_encode($data), '+/', '-_'), '=');
}

/** Return the identity of the signed-in user. `$profile` may have name, email, phone, avatar and attributes. */
function identify(string $channelId, string $secret, string $userId, array $profile = []): string
{
    $claims = ['sub' => $userId, 'aud' => $channelId, 'exp' => time() + LIFETIME_S] + $profile;
    $signed = encoded(json_encode(['alg' => 'HS256', 'typ' => 'JWT'], JSON_THROW_ON_ERROR))
        . '.' . encoded(json_encode($claims, JSON_THROW_ON_ERROR));
    return $signed . '.' . encoded(hash_hmac('sha256', $signed, $secret, true));
}

if (PHP_SAPI === 'cli' && realpath($argv[0]) === __FILE__) {
    [, $userId, $name] = $argv;
    $secret = (string) getenv('CHANNEL_SECRET');
    echo identify((string) getenv('CHANNEL_ID'), $secret, $userId, ['name' => $name]), "\n";
}
