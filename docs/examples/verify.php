<?php
// Receive Deskwire's webhooks: verify, store, answer, and then work. Needs PHP 8.0 or newer, and nothing else.
//
// WEBHOOK_SECRET=whsec_... php -S 127.0.0.1:9000 verify.php
// While you rotate the secret, give both: WEBHOOK_SECRET=whsec_new,whsec_old

declare(strict_types=1);

const TOLERANCE_S = 300;
const BODY_MAX = 1 << 20;

/** Whether `$header`, the value of Service-Signature, signs `$body`, the raw bytes as they came. */
function verify(string $secret, string $header, string $body, ?int $now = null): bool
{
    $t = '';
    $signatures = [];
    foreach (explode(',', $header) as $part) {
        [$name, $value] = array_pad(explode('=', trim($part), 2), 2, '');
        if ($name === 't') {
            $t = $value;
        } elseif ($name === 'v1') {
            $signatures[] = $value;
        }
    }
    if (preg_match('/\A[0-9]{1,15}\z/', $t) !== 1 || abs(($now ?? time()) - (int) $t) > TOLERANCE_S) {
        return false;
    }
    foreach (explode(',', $secret) as $key) {
        // The key is the whole secret, `whsec_` included. It is not base64: do not decode it.
        $expected = hash_hmac('sha256', "$t.$body", trim($key));
        foreach ($signatures as $each) {
            if (hash_equals($expected, $each)) {
                return true;
            }
        }
    }
    return false;
}

/** Keep an event in a file of its own; false if it is there. A table with a unique column does the same. */
function store(string $eventId, string $body): bool
{
    $inbox = getenv('INBOX') ?: 'deskwire-inbox';
    if (!is_dir($inbox)) {
        @mkdir($inbox); // another request may have been quicker
    }
    $part = "$inbox/.$eventId-" . bin2hex(random_bytes(8));
    if (file_put_contents($part, $body) !== strlen($body)) {
        throw new RuntimeException("$inbox can't be written"); // answered with 500: it is sent again
    }
    try {
        return @link($part, "$inbox/$eventId.json") // whole, and once
            || (is_file("$inbox/$eventId.json") ? false : throw new RuntimeException("$inbox can't be written"));
    } finally {
        unlink($part);
    }
}

/** Do what your business needs; better: a worker of yours takes the files from the inbox. */
function work(array $event): void
{
    error_log('verified ' . $event['type'] . ' ' . ($event['sequence'] ?? 'null') . ' ' . $event['id']);
}

function receive(): void
{
    http_response_code(500); // until it is stored, whatever happens
    $body = (string) file_get_contents('php://input', false, null, 0, BODY_MAX);
    if (!verify((string) getenv('WEBHOOK_SECRET'), $_SERVER['HTTP_SERVICE_SIGNATURE'] ?? '', $body)) {
        http_response_code(400);
        return;
    }
    $event = json_decode($body, true, 512, JSON_THROW_ON_ERROR);
    if (preg_match('/\Aevt_[0-9A-Za-z]{1,60}\z/', $event['id']) !== 1) {
        http_response_code(400);
        return;
    }
    $new = store($event['id'], $body);
    http_response_code(204);
    if (function_exists('fastcgi_finish_request')) {
        fastcgi_finish_request(); // PHP-FPM: the answer goes now, whatever the work takes
    }
    $new ? work($event) : error_log('again ' . $event['id']);
}

if (PHP_SAPI !== 'cli') {
    receive();
}
