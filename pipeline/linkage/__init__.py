"""Source records -> atoms -> edges -> clusters -> stable recording ids; pure functions over frames."""
