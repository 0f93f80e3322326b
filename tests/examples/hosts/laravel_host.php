<?php

// Serves `App\Support` of the guide for Laravel with a sign-in by a header: php -S 127.0.0.1:PORT laravel_host.php.

declare(strict_types=1);

use App\Support;

require __DIR__ . '/app/Support.php';

$path = $_SERVER['REQUEST_URI'];
if ($path === '/deskwire/webhooks') {
    require __DIR__ . '/verify.php'; // the whole example, which receives
    return;
}
$user = $_SERVER['HTTP_X_USER'] ?? null;
if ($user === null) {
    http_response_code(401);
    return;
}
try {
    if ($path === '/deskwire/messages') {
        $sent = json_decode((string) file_get_contents('php://input'), true, 512, JSON_THROW_ON_ERROR);
        is_string($sent['id'] ?? null) && is_string($sent['text'] ?? null) || throw new JsonException();
        Support::postMessage($user, $sent['id'], $sent['text']);
        http_response_code(204);
        return;
    }
    $allowed = Support::authorize($user, $_POST['socket_id'], $_POST['channel_name'], $_POST['consumerId']);
    http_response_code($allowed === null ? 403 : 200);
    header('Content-Type: application/json');
    echo json_encode($allowed);
} catch (JsonException) {
    http_response_code(400);
} catch (RuntimeException $refused) {
    http_response_code($refused->getCode());
}
